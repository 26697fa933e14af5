"""The documentation as `make docs` builds it, opened from the disk in a real browser."""

from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "site"


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_every_page_fits_its_window_and_raises_no_error(open_page, width, theme):
    browser = open_page(width=width, theme=theme)
    browser.get_log("browser")
    pages = sorted(page for page in SITE.rglob("*.html") if page.name != "404.html")  # that one is for servers
    assert len(pages) > 20, "run: make docs"
    for page in pages:
        browser.get(page.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, page
        assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == [], page


def test_the_theme_follows_the_readers_system(open_page):
    colours = set()
    for theme in ("light", "dark"):
        browser = open_page(theme=theme)
        browser.get((SITE / "index.html").as_uri())
        colours.add(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2
