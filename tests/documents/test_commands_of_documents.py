"""The command lines of README and docs, carried out in the order in which a reader types them, at a tiny size."""

import glob
import itertools
import re
import sys
from pathlib import Path

import gymnasium
import numpy as np

from mbdp.experiments.cli import main
from tests.faults.runs import OPTIONS
from tests.test_docs import ROOT, commands_in, python_blocks

READ = ["README.md", *(f"docs/{name}.md" for name in ("index", "tutorial", "guide", "robustness", "reports", "theory"))]
TINY = {
    "train": [*OPTIONS, "--steps", "60"],
    "resume": ["--steps", "70", "--quiet"],
    "evaluate": ["--episodes", "1"],
    "robustness": ["--episodes", "1", "--workers", "1"],
    "sweep": ["--status"],
    "report": [],
    "reproduce": ["--out", "figures"],
}
ELSEWHERE = {
    r"\.zip|\.onnx": "tests/peers",
    r"--ray": "tests/ray",
    r"--video|^watch": "tests/video",
    r"reproduce (?!.*--from)": "tests/experiments/test_reproduce_smoke.py",
}


def tiny(line: list[str]) -> list[str]:
    """The command with its size made tiny, and its words as a shell would expand them."""
    name, *words = line
    words = [part for word in words for part in (sorted(glob.glob(word)) if "*" in word else [word])]
    words = [word.replace("RUN", "runs/mbdp/Hopper-v5_0") for word in words]
    if name == "robustness" and not {"--axis", "--mass", "--grid"} & set(words):
        words += ["--grid", "0.8,1.2"]
    return [name, *words, *TINY[name]]


def place_of(line: list[str]) -> Path:
    """The run directory that a `train` will make."""
    said = dict(itertools.pairwise(line))
    name = f"{line[1]}_{said.get('--seed', '0')}"
    return Path(said.get("--out", "runs"), said.get("--algo", "mbdp"), name)


def test_commands_of_readme_and_docs_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("results", "specs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "logs/sac/Hopper-v5_0").mkdir(parents=True)  # what RL Zoo leaves
    np.savez(tmp_path / "logs/sac/Hopper-v5_0/evaluations.npz", timesteps=[10, 20], results=np.ones((2, 3)))
    done: set[str] = set()
    for page in READ:
        for code, _ in python_blocks(ROOT / page):
            if named := re.match(r"# (\w+\.py)\n", code):
                (tmp_path / named[1]).write_text(code)
        for line in commands_in(ROOT / page):
            text = " ".join(line)
            if text in done or line[0] not in TINY or any(re.search(pattern, text) for pattern in ELSEWHERE):
                continue
            done.add(text)
            line = tiny(line)
            if line[0] == "train" and place_of(line).exists():
                line += ["--out", f"runs_{len(done)}"]  # a reader would delete the first
            assert main(line) == 0, f"{page}: mbdp {text}\n{capsys.readouterr().err}"
    assert len(done) > 20
    gymnasium.registry.pop("Crane-v0")
    sys.modules.pop("crane")
