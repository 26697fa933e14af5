"""Whatever is in a file, loading it ends well or with our own error."""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import safetensors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from mbdp import MBDP
from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.policies.policy import load_policy
from mbdp.storage.checkpoint import seal
from mbdp.types import BadInput

INPUTS = 300  # of each kind
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
fuzzed = settings(
    max_examples=INPUTS, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def original(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    for file in ("policy.json", "policy.safetensors"):
        shutil.copy(whole / file, folder)
    return Path(shutil.copy(checkpoints_of(whole)[0], folder / "original.mbdp"))  # of step 0: small, so quick


def survives(load: Any, path: Path) -> None:
    with suppress(BadInput):
        load(path)


@fuzzed
@given(st.data())
def test_bytes_that_were_changed_anywhere(original, data):
    content = bytearray(original.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        # Half of them in the header, where more can go wrong than in the numbers.
        last = data.draw(st.sampled_from([9000, len(content)])) - 1
        content[data.draw(st.integers(0, min(last, len(content) - 1)))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(len(content) // 2, len(content)) | st.just(len(content))) :]
    changed = original.with_name("changed.mbdp")
    changed.write_bytes(content)
    survives(MBDP.load, changed)


@fuzzed
@given(st.binary(max_size=300))
def test_bytes_that_are_no_checkpoint_at_all(original, content):
    changed = original.with_name("noise.mbdp")
    changed.write_bytes(content)
    survives(MBDP.load, changed)


@fuzzed
@given(st.data())
def test_words_of_any_kind_under_a_valid_seal(original, data):
    with safetensors.safe_open(original, framework="numpy") as opened:
        about = json.loads(opened.metadata()["mbdp"])
    place: Any = about
    while True:
        name = data.draw(st.sampled_from(sorted(place)))
        if not (isinstance(place[name], dict) and place[name] and data.draw(st.booleans())):
            break
        place = place[name]
    place[name] = data.draw(anything)
    forged = original.with_name("forged.mbdp")
    save_file(load_file(original), forged, seal(about))
    survives(MBDP.load, forged)


@fuzzed
@given(st.data())
def test_policy_files_with_other_words(original, data):
    words = json.loads((original.parent / "policy.json").read_text())
    words[data.draw(st.sampled_from(sorted(words)))] = data.draw(anything)
    folder = original.parent / "policy"
    folder.mkdir(exist_ok=True)
    shutil.copy(original.parent / "policy.safetensors", folder)
    (folder / "policy.json").write_text(json.dumps(words))
    survives(load_policy, folder)
