"""The documents quote the code as it is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = " ".join(" ".join(file.read_text().split()) for file in sorted((ROOT / "src").rglob("*.py"))).replace("( ", "(")
HEADER = re.compile(r"^\| (equation|Algorithm 1) \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)


def quotes(document: str) -> list[str]:
    """What stands in backticks in the last column of tables that set equations beside lines of code."""
    found = []
    for table in HEADER.finditer((ROOT / "docs" / document).read_text()):
        for row in table[2].splitlines():
            code = re.split(r"(?<!\\)\|", row)[-2]
            found += [quote for quote in re.findall(r"`([^`]+)`", code) if not quote.endswith(".py")]
    return found


@pytest.mark.parametrize(("document", "at_least"), [("algorithms.md", 15), ("algorithm.md", 7)])
def test_lines_beside_equations_are_lines_of_the_code(document, at_least):
    assert len(quotes(document)) >= at_least
    missing = [
        quote
        for quote in quotes(document)
        for part in quote.split("...")
        if part.strip(" ,)") and part.strip(" ,)") not in CODE
    ]
    assert missing == []
