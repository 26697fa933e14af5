"""A real Chromium without a window, driven through its own driver."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from mbdp.experiments.cli import main
from tests.analysis.made_up import make_robustness, make_run


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every section: two methods, a broken run, and a result of `mbdp robustness`."""
    folder = tmp_path_factory.mktemp("report")
    for seed in range(3):
        for alpha in (0.0, 0.2):
            returns = [100.0 * i * (1 + alpha) + 10 * seed for i in range(1, 21)]
            make_run(folder / "runs" / str(alpha) / f"Hopper-v5_{seed}", returns, alpha=alpha, bias=[[0.3, 0.1]] * 20)
    (folder / "runs" / "0.2" / "Hopper-v5_9").mkdir()
    make_robustness(folder / "runs" / "robustness")
    assert main(["report", str(folder / "runs"), "--out", str(folder / "report.html")]) == 0
    return folder / "report.html"


@pytest.fixture
def open_page(page: Path) -> Iterator[Callable[..., Any]]:
    """Open the page in a window of some size and theme, and close it in the end."""
    browsers = []

    def opened(width: int = 1280, height: int = 900, theme: str = "light") -> Any:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
        # Without a sandbox, because containers run as root; the page is our own.
        for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser: Any = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        browsers.append(browser)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(page.as_uri())
        return browser

    yield opened
    for browser in browsers:
        browser.quit()
