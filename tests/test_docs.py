"""The documents quote the code as it is, their links lead somewhere, and what they tell a reader to type works."""

import argparse
import ast
import contextlib
import importlib
import importlib.util
import os
import re
import shlex
import sys
import tomllib
import unicodedata
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from mbdp import api
from mbdp.experiments.cli import COMMANDS, OneLineParser, main
from mbdp.robustness import axes
from tests.conftest import tiny_expanding

ROOT = Path(__file__).parent.parent
CODE = " ".join(" ".join(file.read_text().split()) for file in sorted((ROOT / "src").rglob("*.py"))).replace("( ", "(")
HEADER = re.compile(r"^\| (equation|Algorithm 1) \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
FENCE = re.compile(r"^(?:<!-- covered by (\S+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


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


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def anchors(page: Path) -> set[str]:
    """The ids of a page's headings, as Python-Markdown makes them."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = [unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode() for title in titles]
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in plain}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_files_and_headings_that_exist(name):
    page, broken = ROOT / name, []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.is_relative_to(ROOT / "docs")], ids=lambda page: page.stem
)
def test_a_page_of_the_site_is_in_its_navigation(page):
    assert re.search(rf": {re.escape(str(page.relative_to(ROOT / 'docs')))}$", (ROOT / "mkdocs.yml").read_text(), re.M)


def parser_of(command: str) -> argparse.ArgumentParser:
    parser = OneLineParser(prog=f"mbdp {command}", allow_abbrev=False)
    importlib.import_module(COMMANDS[command][0]).add_arguments(parser)
    return parser


def commands_in(page: Path) -> list[list[str]]:
    """The command lines of mbdp in a page's blocks, without comments."""
    blocks = [block[3] for block in FENCE.finditer(page.read_text()) if block[2] in ("", "bash")]
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("mbdp ")]


@pytest.mark.parametrize("page", [page for page in PAGES if commands_in(page)], ids=lambda page: page.stem)
def test_command_lines_are_understood(page):
    for name, *arguments in commands_in(page):
        if name != "--help":
            assert not {"-h", "--help"} & set(arguments)
            parser_of(name).parse_args(arguments)  # raises BadInput


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_examples_in_the_help_are_understood(command, capsys):
    with contextlib.suppress(SystemExit):
        main([command, "--help"] if command else ["--help"])
    examples = re.findall(r"^  (mbdp \S+ .+?)(?: {2,}.*)?$", capsys.readouterr().out.partition("examples:")[2], re.M)
    assert examples
    for _, name, *arguments in map(shlex.split, examples):
        parser_of(name).parse_args(arguments)  # raises BadInput


@pytest.mark.parametrize("name", NAMES)
def test_options_of_commands_in_a_sentence_exist(name):
    for code in re.findall(r"`(mbdp [a-z]+ [^`]+)`", FENCE.sub("", (ROOT / name).read_text())):
        command = code.split()[1]
        known = {option for action in parser_of(command)._actions for option in action.option_strings} | {"--help"}
        assert set(re.findall(r"(?<= )--[a-z-]+", code)) <= known, code


def python_blocks(page: Path) -> list[tuple[str, str]]:
    """The Python code of a page, and the test that covers it where it is not run here."""
    return [(block[3], block[1] or "") for block in FENCE.finditer(page.read_text()) if block[2] == "python"]


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.stem)
def test_python_blocks_import_what_exists(page):
    for code, _ in python_blocks(page):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mbdp":
                module = importlib.import_module(node.module or "")
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.stem)
def test_python_blocks_that_are_not_run_here_name_the_test_that_covers_them(page):
    for where in filter(None, (where for _, where in python_blocks(page))):
        file, _, name = where.partition("::")
        assert (ROOT / file).exists(), where
        assert not name or re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), where


RUN = [page for page in PAGES if any(not elsewhere for _, elsewhere in python_blocks(page))]
# What a reader of README has at hand: it says `observation`, `bias` and `reward` without making them up.
AT_HAND = {
    "observation": np.zeros(11, np.float32),
    "bias": np.array([0.3, 0.1, 0.9, 0.2, 0.4]),
    "reward": np.random.default_rng(0).normal(size=(32, 10)),
}


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_python_blocks_run_at_a_tiny_size(page, tmp_path, monkeypatch):
    monkeypatch.setattr(axes, "AXES", dict(axes.AXES))  # a page adds one
    small = api.METHODS["mbdp"]._replace(preset=lambda *_: tiny_expanding(real_ratio=0.5))
    monkeypatch.setitem(api.METHODS, "mbdp", small)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    os.symlink(ROOT / "results", tmp_path / "results")
    names = {"__name__": "__docs__"} | (AT_HAND if page.name == "README.md" else {})
    for code, elsewhere in python_blocks(page):
        if named := re.match(r"# (\w+\.py)\n", code):
            (tmp_path / named[1]).write_text(code)
        elif not elsewhere:
            exec(compile(re.sub(r"learn\([\d_]+", "learn(60", code), page.name, "exec"), names)
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)
    gymnasium.registry.pop("Crane-v0", None)


def test_the_page_of_settings_is_up_to_date():
    spec = importlib.util.spec_from_file_location("settings_table", ROOT / "docs" / "settings_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page(), "run: python docs/settings_table.py"


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != ROOT], ids=lambda page: page.stem)
def test_a_page_says_its_purpose_before_anything_else(page):
    first = re.sub(r"^# .+\n+", "", page.read_text())
    assert re.match(r"[A-Z`]", first), "the title is followed by a sentence"


def test_the_citation_is_of_this_version():
    (cited,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
