"""Write the tables of the compared systems into docs/algorithms.md, from the raw numbers under results/.

python -m benchmarks.systems
"""

from pathlib import Path

import numpy as np
from benchmarks.marks import fill

from mbdp.analysis.curves import read_curve, smoothed

ROOT = Path(__file__).parent.parent
SYSTEMS = ("MBDP", "MBPO", "SLBO", "STEVE", "SAC")
PENDULUM = {
    "MBDP": "mbdp",
    "MBDP, 4 + 1 updates": "mbdp_four_updates",
    "MBPO": "mbpo",
    "SLBO": "slbo",
    "SLBO, advantages scaled up": "slbo_scaled",
    "STEVE": "steve",
    "SAC": "sac",
}
SOLVED = 950
WINDOW = 5_000  # env steps over which evaluations are averaged, as single ones swing


def main() -> None:
    document = ROOT / "docs/algorithms.md"
    fill(document, "pendulum", pendulum_table())
    fill(document, "hopper", hopper_table())


def curves(folder: str) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Seed, env steps and returns of every run."""
    return [(run.name.rpartition("_")[2], *read_curve(run)) for run in sorted((ROOT / "results" / folder).glob("*_*"))]


def pendulum_table() -> str:
    """When each seed first solved InvertedPendulum, and how often it did from then on."""
    lines = [
        f"| system | env steps run | {SOLVED} first passed at, by seed | evaluations of at least {SOLVED} from then on "
        "| at the end |",
        "|---|---|---|---|---|",
    ]
    for system, folder in PENDULUM.items():
        first, share, last, ran = [], [], [], set()
        for _, steps, returns in curves(f"inverted_pendulum/{folder}"):
            good = returns >= SOLVED
            when = int(np.argmax(good))
            first.append(f"{int(steps[when]):,}" if good.any() else "never")
            share.append(f"{good[when:].mean():.0%}" if good.any() else "none")
            last.append(f"{returns[-1]:.0f}")
            ran.add(int(steps[-1]))
        cells = (" or ".join(f"{n:,}" for n in sorted(ran)), ", ".join(first), ", ".join(share), ", ".join(last))
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def hopper_table() -> str:
    """Returns on Hopper along the way."""
    places = (20_000, 40_000, 50_000, 100_000)
    names = " | ".join(f"{place:,}" for place in places)
    lines = [
        f"| system, seed | env steps | {names} | last ten evaluations | best evaluation |",
        "|---" * (len(places) + 4) + "|",
    ]
    for system in SYSTEMS:
        folder = "hopper/eight_updates" if system == "MBDP" else f"hopper_systems/{system.lower()}"
        for seed, steps, returns in curves(folder):
            line = smoothed(steps, returns, WINDOW)
            means = [f"{line[np.argmax(steps >= place)]:,.0f}" if steps[-1] >= place else "" for place in places]
            best = f"{returns.max():,.0f} at {int(steps[returns.argmax()]):,}"
            cells = (f"{int(steps[-1]):,}", *means, f"{returns[-10:].mean():,.0f}", best)
            lines.append(f"| {system}, {seed} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
