"""Write the table of the screening runs into docs/screening.md, from results/screening.

python -m benchmarks.screening
"""

from pathlib import Path

from benchmarks.marks import fill

from mbdp.analysis.curves import read_curve

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "results/screening"
STEPS = (5_000, 10_000, 20_000, 30_000, 50_000)
FOLDERS = {
    "h_alpha_fifth": "default, alpha 0.2",
    "h_gamma_0998": "default, gamma 0.998",
    "h_published_settings": "H = 5, 5 critics, tau 0.005, one update per env step, no dropout, no siblings, no cuts, "
    "fits of 1,000 steps every 1,000 env steps",
    "shared_noise_0995": "G, siblings share their noise, gamma 0.995 (default)",
    "shared_noise": "G, siblings share their noise",
    "g_unclipped": "G, velocities not clipped",
    "g_five_steps": "G, H = 5",
    "two_updates_099": "G: F, 2 updates per env step, alpha 0.5, gamma 0.99",
    "two_updates_no_siblings_099": "F, 2 updates per env step, no siblings and no alpha, gamma 0.99",
    "no_siblings_099": "F, no siblings and no alpha, gamma 0.99",
    "no_siblings": "F, no siblings and no alpha",
    "two_updates_real_targets_entropy": "F, 2 updates per env step, alpha 0.5, a quarter of the rows real, critics "
    "learn from them, target entropy -3",
    "two_updates_uniform_no_bootstrap": "F, 2 updates per env step, alpha 0.5, whole episodes, uniform starts and "
    "fits, no bootstraps",
    "two_updates_all_changes": "F, 2 updates per env step, no siblings and no alpha, gamma 0.99, and all changes of "
    "the last two",
    "noise_per_input": "F, `--model-noise input`",
    "one_update": "F: one update per env step, alpha 0.2, gamma 0.995",
    "two_updates_alpha_half": "F, 2 updates per env step, alpha 0.5",
    "no_noise_small_batches": "F, no noise in imagined steps, fits of 800 steps with batches of 64",
    "half_noise": "F, half of the noise in imagined steps",
    "recent_fits": "F, average over 2,000",
    "no_bootstrap_recent_fits": "F, average over 2,000, no bootstraps",
    "cut_by_earnings": "E: F, average over 2,000, uniform fits",
    "walker_real_targets_quarter": "E, alpha 0.5, a quarter of the rows real, critics learn from them",
    "cut_by_chance_or_earnings": "D: as E, and cut by chance from 100 steps on",
    "walker_alpha_half": "D, alpha 0.5",
    "walker_real_targets": "D, alpha 0.5, half of the rows real, critics learn from them",
    "walker_unclipped": "D, velocities not clipped",
    "cut_by_chance": "A, cut by chance from 100 steps on",
    "cut_at_200": "A, cut at 200 steps or 1/200 of all env steps",
    "recent_starts": "A: as B, and half of the rollouts start in recent states",
    "two_updates_recent": "A, cut at 200 steps or 1/200 of all env steps, 2 updates per env step",
    "zero_in_bounds": "B: as C, and bounds include 0",
    "faster_targets": "B, tau 0.05",
    "five_steps_five_critics": "C, H = 5, 5 critics, tau 0.005, no dropout, no siblings",
    "default": "C: episodes cut at 1/50 of all env steps, 2,500 random steps, average over 2,000",
    "cut_and_random_2500": "C, average over 500",
    "shallow": "2 x 256, no bootstraps, fit batch 128",
    "with_bootstraps": "2 x 256, fit batch 128",
    "five_steps": "H = 5, fit batch 128",
    "whole_episodes": "former default",
    "cut_episodes": "former default, episodes cut",
    "random_2500": "former default, 2,500 random steps",
    "held_actions": "former default, random actions held for 4 steps",
    "split_members": "former default, all members in each update",
    "four_siblings": "former default, 4 siblings",
    "two_updates": "former default, 2 updates per env step",
    "no_bootstrap": "former default, no bootstraps",
    "alpha_half": "former default, episodes cut, alpha 0.5",
}
DOUBLE_PENDULUM = {
    "mbpo": "`--algo mbpo`",
    "4_updates": "F, 4 updates per env step",
    "noise_per_input": "no dropout, `--model-noise input`",
    "no_bootstrap": "no dropout, no bootstraps",
    "1000_fit_steps": "F, fits of 1,000 steps",
    "no_noise": "no dropout, no noise",
    "no_noise_1000_fit_steps": "no dropout, no noise, fits of 1,000 steps",
    "no_noise_no_bootstrap": "no dropout, no noise, no bootstraps",
    "no_noise_alpha_half": "alpha 0.5, beta 0, no noise",
    "no_noise_small_batches": "F, no noise, fits of 800 steps with batches of 64",
    "no_noise_4_updates": "F, no noise, 4 updates per env step",
}


def main() -> None:
    fill(ROOT / "docs/screening.md", "runs", all_runs())
    fill(ROOT / "docs/screening.md", "double", double_pendulum_runs())


def double_pendulum_runs() -> str:
    """Returns on InvertedDoublePendulum-v5, as Markdown."""
    lines = ["| setting | seed | at 1,500 | at 2,000 | at 2,500 | highest |", "|---" * 6 + "|"]
    for folder, setting in DOUBLE_PENDULUM.items():
        for run in sorted((RUNS / "double_pendulum" / folder).glob("*_*")):
            steps, returns = read_curve(run)
            found = dict(zip(map(int, steps), map(float, returns), strict=True))
            cells = (f"{value:,.0f}" for value in (found[1_500], found[2_000], found[2_500], max(returns)))
            lines.append(f"| {setting} | {_seed(run)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def all_runs() -> str:
    """Return of each run at some numbers of env steps, as Markdown."""
    lines = ["| task | seed | setting | " + " | ".join(f"{step:,}" for step in STEPS) + " | last |", "|---" * 9 + "|"]
    for folder, setting in FOLDERS.items():
        for run in sorted((RUNS / folder).glob("*_*")):
            steps, returns = read_curve(run)
            found = dict(zip(map(int, steps), map(float, returns), strict=True))
            cells = " | ".join(f"{found[step]:,.0f}" if step in found else "" for step in STEPS)
            last = f"{returns[-1]:,.0f} at {int(steps[-1]):,}"
            lines.append(f"| {_task(run)} | {_seed(run)} | {setting} | {cells} | {last} |")
    return "\n".join(lines)


def _task(run: Path) -> str:
    return run.name.rpartition("_")[0]


def _seed(run: Path) -> str:
    return run.name.rpartition("_")[2]


if __name__ == "__main__":
    main()
