"""Text that a program writes into a document, between two marks."""

import re
from pathlib import Path


def fill(file: Path, name: str, text: str) -> None:
    """Replace what stands between <!-- name --> and <!-- /name -->."""
    marks = re.compile(f"(<!-- {name} -->\n).*(<!-- /{name} -->)", re.DOTALL)
    old = file.read_text()
    if not marks.search(old):
        raise SystemExit(f"{file}: there is no place marked {name}")
    file.write_text(marks.sub(lambda found: f"{found[1]}{text}\n{found[2]}", old))
