"""What the measurements of speed say: medians, ratios within a round, and distance from the machine's limit."""

from typing import Any

import numpy as np
from benchmarks.speed.measure import quartiles

OURS = "mbdp"


def described(seconds: dict[str, list[float]], ways: list[str], work: float, speed: float) -> dict[str, Any]:
    """Milliseconds of each way, how many times faster ours is in the same round, and how close to the limit."""
    limit = work / speed / 1e6
    return {
        "milliseconds": {name: quartiles(1e3 * np.array(seconds[name])) for name in ways},
        "times_faster": {
            name: quartiles(np.array(seconds[name]) / seconds[OURS]) for name in ways if not name.startswith(OURS)
        },
        "gflop": work / 1e9,
        "gflop_per_second_of_products": speed,
        "limit_milliseconds": limit,
        "share_of_limit": limit / float(np.median(1e3 * np.array(seconds[OURS]))),
        "seconds": {name: seconds[name] for name in seconds},
    }


def table(report: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        "| what | who | ms (quartiles) | mbdp is faster by | share of the matrix products' speed |",
        "|---|---|---|---|---|",
    ]
    for part, found in report["parts"].items():
        for name, (low, middle, high) in found["milliseconds"].items():
            faster = found["times_faster"].get(name)
            share = f"{found['share_of_limit']:.0%}" if name == OURS and part != "acting" else ""
            ratio = f"{faster[1]:.2f} ({faster[0]:.2f} to {faster[2]:.2f})" if faster else ""
            lines.append(
                f"| {part}, per {found['unit']} | {name} | {_three_digits(middle)} ({_three_digits(low)} to "
                f"{_three_digits(high)}) | {ratio} | {share} |"
            )
    about = report["machine"]
    hardware = f"{about['processor']}, {about['cores']} cores, {about['memory_gb']} GB"
    lines.append(f"\n{hardware}; {about['system']}; load before: {about['load_before']}")
    return "\n".join(lines)


def _three_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"
