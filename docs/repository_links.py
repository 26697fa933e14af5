"""A hook of MkDocs: links from a page to files of the repository outside docs/ work in the built site.

Source files become pages that show them, all other files are copied, and a link to a folder becomes plain text.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(?<=\]\()(?:\.\./)+([^)#\s]+)(?:#[^)]*)?(?=\))")
LINK_TO_FOLDER = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)#\s]+)\)")
SHOWN = {".py": "python", ".toml": "toml", ".md": "markdown"}


def on_files(files: Files, *, config: Any) -> Files:
    """Add every file of the repository that a page links to."""
    pages = [Path(file.abs_src_path or "") for file in files.documentation_pages()]
    for name in sorted({name for page in pages for name in _outside(page)}):
        path = ROOT / name
        if path.is_dir():
            continue
        if path.suffix in SHOWN:
            files.append(File.generated(config, _place(name), content=_listing(name)))
        else:
            files.append(File.generated(config, _place(name), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Point links at what `on_files` added."""
    here = Path(page.file.abs_src_path or "")
    names = _outside(here) if here.is_file() else set()
    up = "../" * page.file.src_uri.count("/")

    def folder(link: re.Match[str]) -> str:
        return link[1] if link[2] in names and (ROOT / link[2]).is_dir() else link[0]

    def place(link: re.Match[str]) -> str:
        return up + _place(link[1]) if link[1] in names else link[0]

    return LINK.sub(place, LINK_TO_FOLDER.sub(folder, markdown))


def _outside(page: Path) -> set[str]:
    """Names, from the root, of files and folders outside docs/ that a page links to and that exist."""
    found = {(page.parent / link[0].partition("#")[0]).resolve() for link in LINK.finditer(page.read_text())}
    inside = [path for path in found if path.exists() and path.is_relative_to(ROOT)]
    return {str(path.relative_to(ROOT)) for path in inside if not path.is_relative_to(ROOT / "docs")}


def _place(name: str) -> str:
    return f"repository/{name}.md" if Path(name).suffix in SHOWN else f"repository/{name}"


def _listing(name: str) -> str:
    text, language = (ROOT / name).read_text(), SHOWN[Path(name).suffix]
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", text)), default=0))
    return f"---\nsearch:\n  exclude: true\n---\n# {name}\n\n{fence}{language}\n{text}\n{fence}\n"
