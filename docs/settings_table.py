"""Write the tables of docs/reference/settings.md from the configurations: `python docs/settings_table.py`."""

from dataclasses import fields
from pathlib import Path

from mbdp.baselines import slbo_config, steve_config
from mbdp.config import Config
from mbdp.presets import preset

PAGE = Path(__file__).parent / "reference" / "settings.md"
HEAD = """\
# Settings

This page lists every setting of `mbdp train`, with its default.

A setting is an option (`--samples-per-state 4`), a keyword argument of `MBDP` (`samples_per_state=4`), and a key of a
sweep.
Values depend on `--algo`, `--preset` and the task. `config.json` in a run directory has the values of that run.

"""


def page() -> str:
    """The page as it should be."""
    paper = preset("mbdp", "", "paper")
    mbdp = [
        (_option(one.name), one.metadata["help"], _shown(one.default), _shown(getattr(paper, one.name)))
        for one in fields(Config)
    ]
    by_task = "In the paper preset, known tasks have their own `horizon`, `updates_per_step` and `target_entropy`.\n"
    parts = [HEAD, "## MBDP\n\n", _table(("setting", "meaning", "default", "paper"), mbdp), "\n", by_task]
    for name, config in (("STEVE", steve_config.Config), ("SLBO", slbo_config.Config)):
        rows = [(_option(one.name), one.metadata["help"], _shown(one.default)) for one in fields(config)]
        parts += [f"\n## {name}\n\n", _table(("setting", "meaning", "default"), rows)]
    return "".join(parts)


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("| --- ", "|---").replace("--- |", "---|")


def _option(name: str) -> str:
    return f"`{name}`"


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


if __name__ == "__main__":
    PAGE.write_text(page())
