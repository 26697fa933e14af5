"""What a person finds who opens the report: no error, curves to toggle, hover and zoom, on any screen."""

from typing import Any

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

METHODS = ["mbdp alpha 0.0", "mbdp alpha 0.2"]


def chart(browser: Any, kind: str) -> Any:
    """The first chart of a kind, scrolled to and drawn."""
    figure = browser.find_element(By.CSS_SELECTOR, f"figure.{kind}")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", figure)
    WebDriverWait(browser, 20).until(lambda _: figure.find_elements(By.CSS_SELECTOR, ".main-svg .xtick"))
    return figure


def curves_drawn(figure: Any) -> int:
    return len(figure.find_elements(By.CSS_SELECTOR, ".scatterlayer .trace path.js-line"))


def errors(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def test_every_chart_is_drawn_without_an_error(open_page):
    browser = open_page()
    for kind in ("curves", "bias", "kept", "effect", "map"):
        chart(browser, kind)
    assert errors(browser) == []


def test_nothing_is_loaded_but_the_page(open_page):
    browser = open_page()
    chart(browser, "curves")
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in loaded if not name.startswith(("data:", "blob:"))] == []


def test_a_click_on_a_methods_name_hides_its_curve_in_every_chart(open_page):
    browser = open_page()
    bias, curves = chart(browser, "bias"), chart(browser, "curves")
    before = curves_drawn(curves), curves_drawn(bias)
    button = curves.find_element(By.CSS_SELECTOR, f"button[data-toggles='{METHODS[0]}']")
    button.click()
    WebDriverWait(browser, 10).until(lambda _: curves_drawn(curves) < before[0])
    assert button.get_attribute("aria-pressed") == "false"
    assert curves_drawn(bias) < before[1]
    button.click()
    WebDriverWait(browser, 10).until(lambda _: (curves_drawn(curves), curves_drawn(bias)) == before)


def test_the_legend_can_be_used_with_keys_alone(open_page):
    browser = open_page()
    button = chart(browser, "curves").find_element(By.CSS_SELECTOR, "button[data-toggles]")
    browser.execute_script("arguments[0].focus()", button)
    browser.switch_to.active_element.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "false"


def test_hovering_over_a_curve_says_method_step_and_return(open_page):
    browser = open_page()
    figure = chart(browser, "curves")
    area = figure.find_element(By.CSS_SELECTOR, ".nsewdrag")
    height = area.size["height"]
    for share in (0.0, 0.1, 0.2, -0.1, -0.2):  # somewhere in the middle there is a curve
        ActionChains(browser).move_to_element_with_offset(area, 0, int(share * height)).pause(0.3).perform()
        if texts := figure.find_elements(By.CSS_SELECTOR, ".hoverlayer .hovertext"):
            break
    words = texts[0].text
    assert any(method in words for method in METHODS)
    assert "steps" in words
    assert "mean" in words


def test_dragging_zooms_in_and_a_double_click_out(open_page):
    browser = open_page()
    figure = chart(browser, "curves")
    place = figure.find_element(By.CSS_SELECTOR, ".plot")

    def end() -> float:
        return float(browser.execute_script("return arguments[0]._fullLayout.xaxis.range[1]", place))

    area, before = figure.find_element(By.CSS_SELECTOR, ".nsewdrag"), end()
    ActionChains(browser).move_to_element(area).click_and_hold().move_by_offset(100, 80).release().perform()
    WebDriverWait(browser, 10).until(lambda _: end() < before)
    ActionChains(browser).double_click(area).perform()
    WebDriverWait(browser, 10).until(lambda _: end() == pytest.approx(before))


def test_every_seed_can_be_shown_and_the_statistic_chosen(open_page):
    browser = open_page()
    figure = chart(browser, "curves")
    before = curves_drawn(figure)
    browser.find_element(By.ID, "seeds").click()
    WebDriverWait(browser, 10).until(lambda _: curves_drawn(figure) == before + 6)
    Select(browser.find_element(By.ID, "statistic")).select_by_value("iqm")
    Select(browser.find_element(By.ID, "axis")).select_by_value("hours")
    WebDriverWait(browser, 10).until(lambda _: "hours" in figure.find_element(By.CSS_SELECTOR, ".xtitle").text)
    assert errors(browser) == []


@pytest.mark.parametrize("width", [360, 768, 1280, 2560])
def test_no_screen_has_to_be_scrolled_sideways(open_page, width):
    browser = open_page(width, 800)
    for kind in ("curves", "kept", "map"):
        chart(browser, kind)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("theme", "bright"), [("light", True), ("dark", False)])
def test_page_and_charts_follow_the_theme(open_page, theme, bright):
    browser = open_page(theme=theme)
    figure = chart(browser, "curves")
    page = browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
    text = figure.find_element(By.CSS_SELECTOR, ".xtick text").value_of_css_property("fill")
    assert (lightness(page) > 0.5) == bright
    assert (lightness(text) < 0.5) == bright


def test_broken_runs_come_first(open_page):
    sections = open_page().find_elements(By.CSS_SELECTOR, "main > section")
    assert sections[0].get_attribute("id") == "broken"
    assert "Hopper-v5_9: there is no metrics.jsonl" in sections[0].text


def lightness(colour: str) -> float:
    return sum(map(float, colour[colour.index("(") + 1 : -1].split(",")[:3])) / 765
