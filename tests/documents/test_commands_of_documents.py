"""Every command of README and docs is carried out in the order in which a reader types it, at a tiny size.

Those that are not stand in `commands.py`, with the test that covers them.
"""

import glob
import importlib
import itertools
import re
import shlex
import shutil
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from benchmarks import screening
from examples import demo

from mbdp.experiments.cli import main
from mbdp.storage.datasets import LEAST
from tests.documents.commands import COVERED, UNTESTED, Command, commands, covered_by
from tests.faults.runs import OPTIONS, options_of
from tests.test_docs import FENCE, ROOT, python_blocks

# XLA unrolls members, layers and imagined steps, and compiling takes longest: as few of them as alpha and beta allow.
FEW = {"members": 3, "samples_per_state": 2, "model_depth": 1, "depth": 1}
TINY = {
    "train": [*OPTIONS, *options_of(FEW), "--steps", "60"],
    "resume": ["--steps", str(LEAST + 10), "--quiet"],  # enough for `--data` to start from
    "evaluate": ["--episodes", "1"],
    "robustness": ["--episodes", "1", "--workers", "1"],
    "sweep": [],
    "report": [],
    "reproduce": ["--out", "figures"],
}
RUN = "runs/mbdp/Hopper-v5_0"
# What a reader puts in their place.
PLACES = {
    "ENV": "Hopper-v5",
    "NAME": "mbpo",
    "A": "sac",
    "N": "60",
    "S": "0",
    "RUN": RUN,
    "SPEC.toml": "spec.toml",
    "--dry-run": "--status",  # it would time whole runs
}
MY_MODULE = """
import gymnasium
import numpy as np

class MyEnv(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2)
        return self.state.astype(np.float32), {}

    def step(self, action):
        self.state = np.clip(self.state + [0.1 * self.state[1], 0.1 * action[0]], -1, 1)
        return self.state.astype(np.float32), -float(self.state[0] ** 2), False, False, {}

gymnasium.register("MyEnv-v0", entry_point=MyEnv, max_episode_steps=30)
"""


def test_commands_that_are_not_run_name_a_test_that_exists():
    ci = (ROOT / ".ci/run").read_text().splitlines()
    for where in COVERED.values():
        file, _, name = where.partition("::")
        assert where in ci or re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), where


def test_no_entry_of_these_lists_is_left_over():
    texts = [command.text for command in commands()]
    assert [x for x in COVERED | UNTESTED if not any(re.search(x, text) for text in texts)] == []


def test_a_command_that_is_neither_run_nor_listed_is_an_error():
    with pytest.raises(AssertionError, match="is neither run nor"):
        carry_out(Command("README.md", "rm --recursive runs"), Path("nowhere"))


def test_commands_of_readme_and_docs_run(reader, capsys):
    done: set[str] = set()
    for page, together in itertools.groupby(commands(), key=lambda command: command.page):
        write_files_of(ROOT / page, reader)
        for command in together:
            if command.text not in done and not covered_by(command.text):
                done.add(command.text)
                carry_out(command, reader)
        for code, where in python_blocks(ROOT / page):
            if where == "tests/documents":
                exec(compile(code, page, "exec"), {"__name__": "__docs__"})
    assert len(done) > 50


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """The working directory of somebody who reads the pages, with what they take for granted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "specs").symlink_to(ROOT / "specs")
    (tmp_path / "results").mkdir()
    for file in (ROOT / "results").iterdir():
        (tmp_path / "results" / file.name).symlink_to(file)
    (tmp_path / "logs/sac/Hopper-v5_0").mkdir(parents=True)  # what RL Zoo leaves
    np.savez(tmp_path / "logs/sac/Hopper-v5_0/evaluations.npz", timesteps=[10, 20], results=np.ones((2, 3)))
    (tmp_path / "my_module.py").write_text(MY_MODULE)
    shutil.copy(ROOT / "results/newcomer/boat.py.txt", tmp_path / "boat.py")
    shutil.copy(ROOT / "specs/example.toml", tmp_path / "spec.toml")
    np.savez(tmp_path / "steps.npz", **some_steps("Hopper-v5"))
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/screening.md", tmp_path / "docs")
    known = set(gymnasium.registry)
    yield tmp_path
    for name in set(gymnasium.registry) - known:
        del gymnasium.registry[name]
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)


def some_steps(env_id: str, count: int = LEAST + 10) -> dict[str, np.ndarray]:
    """Steps of random actions, as a replay buffer of Stable-Baselines3 names them."""
    env, rows = gymnasium.make(env_id), []
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    for _ in range(count):
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        rows.append((observation, following, action, reward, terminated or truncated, truncated))
        observation = env.reset()[0] if terminated or truncated else following
    env.close()
    names = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def write_files_of(page: Path, folder: Path) -> None:
    """Files that a page tells its reader to save."""
    for block in FENCE.finditer(page.read_text()):
        if named := re.match(r"# (?:Save as )?(\w+\.(?:py|toml))\b", block[3]):
            (folder / named[1]).write_text(block[3])


def carry_out(command: Command, folder: Path) -> None:
    """Run one command as its reader would, at a tiny size."""
    program, *words = shlex.split(command.text)
    if program == "mbdp":
        code = ask_for_help(words) if words[-1].startswith("--help") else main(tiny(words))
        assert code == 0, f"{command.page}: {command.text}"
    elif command.text == "make demo":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(demo, "main", lambda words: main(tiny(list(words))))
            demo.demo()
    elif command.text == "python -m benchmarks.screening":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(screening, "ROOT", folder)
            screening.main()
        assert (folder / "docs/screening.md").read_text() == (ROOT / "docs/screening.md").read_text(), command.text
    elif program == "python" and "benchmarks" in command.text:
        run_benchmark(words)
    else:
        raise AssertionError(f"{command.page}: {command.text!r} is neither run nor in tests/documents/commands.py")


def run_benchmark(words: list[str]) -> None:
    """A script of the project on a tiny run, its result in the reader's folder."""
    name = words[1] if words[0] == "-m" else words[0].removesuffix(".py").replace("/", ".")
    arguments = [PLACES.get(word, word) for word in words[1 + (words[0] == "-m") :]]
    few = {
        "benchmarks.theory_of_run": ("--episodes",),
        "benchmarks.theory_cost": (),
        "benchmarks.robustness_speed": ("--values", "--episodes", "--plain-episodes", "--workers", "--rounds"),
    }
    more = [word for option in few[name] for word in (option, "1")]
    if name == "benchmarks.theory_cost":
        arguments = ["results/theory/InvertedPendulum-v5_0"]  # it compares evaluations, of which a tiny run has one
    with pytest.MonkeyPatch.context() as patch:
        kept = [word for word in arguments if word != "sac.zip"]
        patch.setattr("sys.argv", [name, *kept, *more, "--out", "measured.json"])
        importlib.import_module(name).main()


def ask_for_help(words: list[str]) -> int | str | None:
    try:
        return main(words)
    except SystemExit as end:
        return end.code


def tiny(line: list[str]) -> list[str]:
    """The command with its size made tiny, and its words as a shell would expand them."""
    name, *words = line
    words = [part for word in words for part in (sorted(glob.glob(word)) if "*" in word else [word])]
    words = [PLACES.get(word, word) for word in words]
    if name == "resume" and "my_module:MyEnv-v0" in words:
        words[0] = "runs/mbdp/my_module:MyEnv-v0_0"
    if name == "robustness" and not {"--axis", "--mass", "--grid"} & set(words):
        words += ["--grid", "0.8,1.2"]
    said, more = dict(itertools.pairwise(words)), TINY[name]
    if "--data" in said:
        more = [*more[:-1], said.get("--steps", "60"), "--data-steps", "10"]
    if name == "sweep" and "--status" not in words:
        more = ["--status"]
    if name == "train" and not {"--algo", "--preset"} & set(words):
        more = [*more, "--expansion", "1"]
    if name == "train":
        more = [*more, "--out", free_place(words[0], said)]
    return [name, *words, *more]


def free_place(env: str, said: dict[str, str]) -> str:
    """Where a run directory can be made: a reader would delete the one that is there."""
    out, run = said.get("--out", "runs"), Path(said.get("--algo", "mbdp"), f"{env}_{said.get('--seed', '0')}")
    places = itertools.chain([out], (f"{out}_{number}" for number in itertools.count()))
    return next(place for place in places if not Path(place, run).exists())
