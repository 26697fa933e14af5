"""A hook of MkDocs: the build fails if a page of the site would load anything from the network."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

LOADED = {"src", "srcset", "data", "poster"}  # attributes whose address a browser loads by itself
LOADED_BY_LINK = {"stylesheet", "icon", "preconnect", "dns-prefetch", "preload", "modulepreload", "manifest"}


def on_post_build(*, config: Any) -> None:
    """Look through all pages and style sheets."""
    for file in sorted(Path(config.site_dir).rglob("*")):
        if file.suffix == ".html" and (found := loaded_from_network(file.read_text())):
            raise PluginError(f"{file} would load {found[0]}")
        if file.suffix == ".css" and any(f"{mark}http" in file.read_text() for mark in ("url(", 'url("', "@import ")):
            raise PluginError(f"{file} would load something from the network")


def loaded_from_network(html: str) -> list[str]:
    """Addresses that a browser would load when it shows this page; links that a reader may follow are none."""
    reader = _Reader()
    reader.feed(html)
    return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        loaded = [value for name, value in values.items() if name in LOADED]
        if tag == "link" and LOADED_BY_LINK & set(values.get("rel", "").split()):
            loaded.append(values.get("href", ""))
        self.found += [value for value in loaded if value.startswith(("http:", "https:", "//"))]
