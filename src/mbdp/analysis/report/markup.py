"""Numbers and tables as HTML; every text that comes from a file is escaped."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from mbdp.analysis.statistics import Estimate

NONE = "&ndash;"  # where there is nothing to say


def table(label: str, head: str, rows: str) -> str:
    """A table in a box that scrolls sideways on a phone, and can be focused so that arrow keys scroll it."""
    box = f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
    return f"{box}<table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"


def pairs(values: Mapping[str, Any]) -> str:
    """Names and values as a list."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{shown(value)}</dd></div>" for name, value in values.items())
    return f"<dl>{items}</dl>"


def shown(value: Any) -> str:
    """A setting, as short as it can be."""
    if isinstance(value, list):
        return escape(" ".join(map(str, value)))
    return NONE if value is None else f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def digits(number: float) -> str:
    """A number with three or more digits."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:,.1f}" if abs(number) >= 10 else f"{number:,.2f}"


def interval(estimate: Estimate) -> str:
    """A number with its interval, if it has one."""
    if estimate.low is None or estimate.high is None:
        return digits(estimate.value)
    return f"{digits(estimate.value)} <small>[{digits(estimate.low)}, {digits(estimate.high)}]</small>"


def percent(estimate: Estimate) -> str:
    """The same for shares, in percent."""
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.0%}"
    return f"{estimate.value:.0%} <small>[{estimate.low:.0%}, {estimate.high:.0%}]</small>"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever is short to read."""
    if not math.isfinite(seconds):
        return NONE
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def interval_picture(estimate: Estimate, low: float, high: float) -> str:
    """A dot and a bar on a scale from `low` to `high`."""

    def place(number: float | None) -> float:
        return 6 + 108 * ((estimate.value if number is None else number) - low) / ((high - low) or 1)

    left, at, right = place(estimate.low), place(estimate.value), place(estimate.high)
    return (
        f'<svg class="interval" width="120" height="14" aria-hidden="true"><line x1="6" x2="114" y1="7" y2="7"/>'
        f'<rect x="{left:.1f}" y="4" width="{max(right - left, 1):.1f}" height="6" rx="3"/>'
        f'<circle cx="{at:.1f}" cy="7" r="4"/></svg>'
    )
