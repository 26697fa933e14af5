"""What the figures share: size, letters, and colours that colour-blind people can tell apart."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

COLUMN, PAGE = 3.4, 7.0  # inches: one column of a two-column paper, and both
# Okabe and Ito's; yellow is darker, because lines of it cannot be seen on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#555555", "#7a4fbf")
MARKERS = "osD^v<>P"
STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # letters stay letters: journals refuse Type 3, and text can be searched
    "savefig.dpi": 300,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw with these settings, and leave those of the user as they were."""
    with matplotlib.rc_context(STYLE):
        yield


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """The figure as PDF for papers and as PNG for screens; call it inside `style()`."""
    folder.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    files = [folder / f"{name}.pdf", folder / f"{name}.png"]
    for file in files:
        # No date in the file: the same numbers give the same bytes.
        figure.savefig(file, metadata={"CreationDate": None} if file.suffix == ".pdf" else None)
    return files


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, in their order."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(names))}


def thousands(value: float, _: object = None) -> str:
    """Env steps on an axis: 60k instead of 60000."""
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"
