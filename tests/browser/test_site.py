"""The documentation as `make docs` builds it, opened from the disk in a real browser."""

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

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


def test_search_finds_a_word_in_pages_that_are_opened_as_files(open_page):
    browser = open_page()
    browser.get((SITE / "index.html").as_uri())
    browser.find_element(By.CSS_SELECTOR, "input.md-search__input").send_keys("onnxruntime")
    found = ".md-search-result__item a[href*='export.html']"
    link = WebDriverWait(browser, 30).until(lambda _: browser.find_element(By.CSS_SELECTOR, found))
    browser.get(link.get_attribute("href"))
    assert "Export a policy" in browser.find_element(By.TAG_NAME, "h1").text
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
