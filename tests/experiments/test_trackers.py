"""Trackers that are not installed; tests/peers has the real ones."""

import pytest

from mbdp.envs.toy import POINT_MASS
from mbdp.experiments import trackers
from mbdp.experiments.cli import main


@pytest.mark.parametrize("command", [["train", POINT_MASS], ["resume", "."]])
@pytest.mark.parametrize("name", trackers.NAMES)
def test_a_missing_package_is_one_line_that_says_what_to_install(command, name, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trackers, "find_spec", lambda package: None)
    assert main([*command, "--track", name]) == 2
    printed = capsys.readouterr()
    assert printed.err == (f"mbdp: --track {name} needs {name}, which is not installed: pip install 'mbdp[{name}]'\n")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_tracker_is_refused(capsys):
    assert main(["train", POINT_MASS, "--track", "comet"]) == 2
    assert "invalid choice: 'comet'" in capsys.readouterr().err
