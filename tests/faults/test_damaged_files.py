"""Checkpoints that were damaged or forged: one line says why, and the one before is used."""

import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors
from safetensors.numpy import load_file, save_file

from mbdp import MBDP
from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import main
from mbdp.storage.checkpoint import BEFORE_EXPANSION, FORMAT, SETTINGS_BEFORE_EXPANSION, seal
from mbdp.types import BadInput
from tests.faults.runs import metrics, remains, train


@pytest.fixture
def file(finished: Path) -> Path:
    return checkpoints_of(finished)[-1]


def forge(file: Path, arrays: dict[str, np.ndarray] | None = None, **words: object) -> None:
    """Write a checkpoint anew with other words or arrays, sealed as if nothing had happened."""
    with safetensors.safe_open(file, framework="numpy") as opened:
        about = json.loads(opened.metadata()["mbdp"])
    save_file(load_file(file) | (arrays or {}), file, seal(about | words))


def test_a_checkpoint_from_before_expansion_goes_on_as_it_was(tmp_path):
    file = checkpoints_of(train(tmp_path, "--algo", "mbpo", "--samples-per-state", "1"))[-1]
    with safetensors.safe_open(file, framework="numpy") as opened:
        about = json.loads(opened.metadata()["mbdp"])
    for name in SETTINGS_BEFORE_EXPANSION:
        assert about["config"].pop(name) == SETTINGS_BEFORE_EXPANSION[name]
    for name in ("acted", "rounds", "kept"):
        del about[name]
    save_file(load_file(file), file, seal(about | {"format": BEFORE_EXPANSION, "due": 0}))
    agent = MBDP.load(file)
    assert agent.config.expansion == 0
    assert agent.learn(20).learner.step == about["step"] + 20


@pytest.mark.parametrize("setting", ["cut_episodes", "recent", "fit_recent"])
def test_a_checkpoint_from_before_a_setting_goes_on_without_it(file, setting):
    with safetensors.safe_open(file, framework="numpy") as opened:
        settings = json.loads(opened.metadata()["mbdp"])["config"]
    assert settings.pop(setting) > 0
    forge(file, config=settings)
    assert getattr(MBDP.load(file).config, setting) == 0


def header(file: Path) -> dict:
    size = struct.unpack("<Q", file.read_bytes()[:8])[0]
    return json.loads(file.read_bytes()[8 : 8 + size])


def behead(file: Path, words: dict) -> None:
    """Give the file another header."""
    content = file.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    text = json.dumps(words).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])


@pytest.mark.parametrize("tenth", range(10))
def test_a_file_cut_at_any_tenth_is_refused(file, tenth):
    file.write_bytes(file.read_bytes()[: file.stat().st_size * tenth // 10])
    with pytest.raises(BadInput, match="not a whole checkpoint"):
        MBDP.load(file)


@pytest.mark.parametrize("place", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_one_flipped_bit_is_seen(file, place):
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 1
    file.write_bytes(content)
    with pytest.raises(BadInput, match=r"damaged|not a whole checkpoint"):
        MBDP.load(file)


def test_a_flipped_bit_in_an_array_names_the_array(file):
    content = bytearray(file.read_bytes())
    content[content.index(load_file(file)["d_model"].tobytes()) + 1000] ^= 4
    file.write_bytes(content)
    with pytest.raises(BadInput, match="damaged, d_model does not have the size and SHA-256"):
        MBDP.load(file)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"format": FORMAT + 1}, f"written in format {FORMAT + 1}; this version of mbdp reads 4 and {FORMAT}"),
        ({"format": "new"}, "written in format 'new'"),
        ({"env": "os:system"}, "pass it as env="),
        ({"env": "Nothing-v0"}, "'Nothing-v0' is not a registered environment"),
        ({"env": "../../etc/passwd"}, "is not a registered environment"),
        ({"env": 7}, "of the wrong kind"),
        ({"seed": -1}, "seed is -1"),
        ({"step": 10**9}, "do not fit together"),
        ({"spec": [2]}, "not a whole checkpoint"),
        ({"world": {}}, "not a whole checkpoint"),
        ({"config": {"alpha": 3}}, "not a whole checkpoint"),
        ({"config": {"value_steps": 3}}, "another version of mbdp, with a setting .value_steps. that is unknown"),
        ({"config": {"horizon": [1, 1, 0, 0], "depth": 10**9}}, "of 20000 do not fit|fewer arrays than"),
        ({"manifest": {}}, "damaged"),
        ({"run": 7}, "saved by hand"),
    ],
)
def test_words_that_make_no_sense_are_refused(file, words, reason, capsys):
    forge(file, **words)
    checkpoints_of(file.parent.parent)[0].unlink()
    assert main(["resume", str(file.parent.parent)]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    with pytest.raises(BadInput, match=reason):
        raise BadInput(printed)


def test_a_buffer_that_is_declared_to_be_huge_is_never_made(file):
    huge = {"d_env": {"capacity": 2**31 - 1, "cursor": 0}, "d_model": {"capacity": 240, "cursor": 0}}
    forge(file, buffers=huge)
    with pytest.raises(BadInput, match=r"d_env is declared to be of 60\.1 GB, more than 8"):
        MBDP.load(file)


def test_an_array_that_is_declared_to_be_of_10_gb_is_refused(file):
    words = header(file)
    words["d_env"] |= {"shape": [10**10 // 28, 7], "data_offsets": [0, 10**10 // 28 * 28]}
    behead(file, words)
    with pytest.raises(BadInput, match="not a whole checkpoint"):
        MBDP.load(file)


def test_an_array_of_objects_is_refused(file):
    words = header(file)
    words["d_env"]["dtype"] = "O"
    behead(file, words)
    with pytest.raises(BadInput, match="not a whole checkpoint"):
        MBDP.load(file)


@pytest.mark.parametrize(("shape", "dtype"), [((10, 8), np.float32), ((10,), np.float32), ((10, 7), np.float64)])
def test_rows_of_another_shape_are_refused(file, shape, dtype):
    rows = np.zeros(shape, dtype)
    with safetensors.safe_open(file, framework="numpy") as opened:
        manifest = json.loads(opened.metadata()["mbdp"])["manifest"]
    from mbdp.storage.checkpoint import _digest

    forge(file, {"d_env": rows}, manifest=manifest | {"d_env": [rows.nbytes, _digest(rows)]})
    with pytest.raises(BadInput, match="d_env has the shape"):
        MBDP.load(file)


def test_networks_of_another_size_are_refused(file):
    config = json.loads(header(file)["__metadata__"]["mbdp"])["config"]
    forge(file, config=config | {"width": 10**6})
    with pytest.raises(BadInput, match=r"is float32.*, not float32"):
        MBDP.load(file)


def test_the_checkpoint_before_is_used_and_both_are_named(finished, file, whole, capsys):
    file.write_bytes(file.read_bytes()[:1000])
    assert main(["resume", str(finished)]) == 0
    printed = capsys.readouterr().out
    assert "step_000000100.mbdp: not a whole checkpoint" in printed
    assert "going on from step_000000000.mbdp instead" in printed
    assert remains(finished) == remains(whole)
    assert file.with_name(file.name + ".damaged").exists()


def test_a_run_without_an_intact_checkpoint_says_why_and_is_left_alone(finished, capsys):
    before = metrics(finished)
    for file in checkpoints_of(finished):
        file.write_bytes(b"")
    assert main(["resume", str(finished)]) == 2
    assert "no checkpoint can be used" in capsys.readouterr().err
    assert metrics(finished) == before
    assert len(checkpoints_of(finished)) == 2


def test_a_policy_file_with_an_id_that_imports_code_is_not_run(finished, capsys):
    words = json.loads((finished / "policy.json").read_text())
    (finished / "policy.json").write_text(json.dumps(words | {"env": "antigravity:Env-v0"}))
    assert main(["evaluate", str(finished)]) == 2
    assert "files import no code" in capsys.readouterr().err


def test_permissions_follow_the_umask(finished):
    before = os.umask(0o027)
    try:
        MBDP.load(checkpoints_of(finished)[-1]).save(finished / "mine.mbdp")
    finally:
        os.umask(before)
    assert (finished / "mine.mbdp").stat().st_mode & 0o777 == 0o640
