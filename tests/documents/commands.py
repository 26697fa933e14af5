"""The commands that README and docs tell a reader to type, and which tests cover those that are not run."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from tests.test_docs import FENCE, PAGES, ROOT

PROGRAMS = ("mbdp", "make", "pip", "python", "python3", "ray")
# Where a command needs an extra, a screen, a cluster or much time, this test does what it does.
COVERED = {
    r"^mbdp export ": "tests/peers/test_export.py::test_the_file_is_sound_onnx_and_says_what_it_is",
    r"^mbdp robustness .*\.onnx": "tests/peers/test_export.py::test_robustness_of_the_file_is_that_of_the_run",
    r"^mbdp robustness .*\.zip": "tests/peers/test_foreign_policies.py::test_ours_sb3_and_onnx_stand_on_one_grid",
    r"^mbdp train .*--data minari:": "tests/peers/test_data.py::test_mbdp_train_learns_offline_from_a_minari_dataset",
    r"^mbdp train .*--envs ": "tests/faults/test_several_envs.py"
    "::test_an_id_that_imports_a_module_works_and_is_given_again",
    r"^mbdp watch ": "tests/video/test_watch.py::test_watch_draws_the_policy_in_a_window_and_ends",
    r"^mbdp evaluate .*--video ": "tests/video/test_video.py::test_evaluate_writes_a_video_that_can_be_read_back",
    r"^mbdp robustness .*--video ": "tests/video/test_video.py::test_the_worst_world_stands_beside_the_nominal_one",
    r"^mbdp sweep .*--ray |^ray (start|stop)": "tests/ray/test_sweep_on_ray.py"
    "::test_a_sweep_that_loses_a_node_ends_like_one_on_this_machine",
    r"^mbdp reproduce (?!.*--from)": "tests/experiments/test_reproduce_smoke.py"
    "::test_every_figure_is_made_from_the_runs_to_the_pdf",
    r"^mbdp reproduce .*--reading retrained --from": "tests/experiments/test_reproduce.py"
    "::test_policies_that_were_trained_in_each_world_are_drawn_without_trying_them_elsewhere",
    r"^eval .*argcomplete": "tests/experiments/test_completion.py::test_what_could_follow_is_offered",
    r"^python3 -m venv |^\. \.venv|^pip install --constraint": "tests/wheel/test_wheel.py"
    "::test_pip_install_of_a_clone_works_in_the_same_environment",
    r"^python docs/settings_table": "tests/test_docs.py::test_the_page_of_settings_is_up_to_date",
    r"^make evidence": "tests/test_evidence.py::test_a_sweep_is_carried_out_and_its_runs_are_kept",
    r"^make torture$": "tests/faults/test_signals.py::test_a_process_that_is_ended_goes_on_to_the_same_end",
    r"^make torture-sweep": "tests/experiments/test_sweep.py"
    "::test_a_worker_that_is_killed_is_started_again_and_comes_to_the_same_end",
    # `.ci/run` calls or installs these.
    r"^make (setup|format|test)$": "make test",
    r"^make test-docs": "make test-docs",
    r"^make docs": "make docs",
    r"^make test-wheel": "make test-wheel",
    r"^make test-peers|^pip install 'mbdp\[(onnx|sb3|sbx|minari)\]'": "make test-peers",
    r"^make test-ray|^pip install 'mbdp\[ray\]'": "make test-ray",
    r"^make test-video|^pip install 'mbdp\[video\]'": "make test-video",
    r"^make test-browser|^pip install 'mbdp\[report\]'": "make test-browser",
}
# What no test does.
UNTESTED = {
    r"^head=|^srun ": "there is no Slurm; the command after `--` is that of the section before",
    r"^ray symmetric-run": "there is no Slurm",
    r"^pip download": "how a version was looked at, once",
    r"^pip install ('gymnasium\[box2d\]'|gymnasium-robotics|'shimmy)": "packages of others",
    r"^mbdp train (gymnasium_robotics|shimmy):": "it needs packages of others",
    r"^make bench": "half an hour of a machine that does nothing else",
    r"^python -m benchmarks\.(known_reward|learned_termination|warm_start|several_envs|unknown_envs)": "hours, and "
    "it would overwrite measured numbers",
    r"^python -m benchmarks\.(export_latency|robustness_speed)$": "it would overwrite measured numbers",
    r"^python benchmarks/checkpoint_speed": "it would overwrite measured numbers",
}


class Command(NamedTuple):
    page: str
    text: str


def covered_by(text: str) -> str | None:
    """Why a command is not run here: the test that covers it, or the reason why none does."""
    return next((why for pattern, why in (COVERED | UNTESTED).items() if re.search(pattern, text)), None)


def commands() -> list[Command]:
    """Every command of every page, in the order of the pages, blocks and sentences alike."""
    return [Command(str(page.relative_to(ROOT)), text) for page in in_reading_order() for text in commands_of(page)]


def in_reading_order() -> list[Path]:
    """README first, then the pages as the site lists them."""
    listed = re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    first = [ROOT / "README.md", *(ROOT / "docs" / name for name in listed)]
    return [*first, *(page for page in PAGES if page not in first)]


def commands_of(page: Path) -> list[str]:
    found = []
    for part in re.split(r"(^```\w*\n.*?^```$)", page.read_text(), flags=re.MULTILINE | re.DOTALL):
        block = FENCE.match(part)
        if block is None:
            found += [code for code in re.findall(r"`([^`\n]+)`", part) if is_command(code)]
        elif block[2] in ("", "bash"):
            lines = block[3].replace("\\\n", " ").splitlines()
            found += [line.strip() for line in lines if shlex.split(line, comments=True)]
        else:  # a command within a file: of a cluster, of a sweep
            found += re.findall(r"\bmbdp (?:train|sweep) .+", block[3]) if block[2] in ("yaml", "toml") else []
    return [without_comment(text) for text in found]


def is_command(code: str) -> bool:
    """More than the name of a program or of a sub-command: `mbdp train` alone is a name."""
    words = code.split()
    return words[0] in PROGRAMS and len(words) > (2 if words[0] == "mbdp" else 1)


def without_comment(text: str) -> str:
    return re.sub(r"\s+#.*$", "", text)
