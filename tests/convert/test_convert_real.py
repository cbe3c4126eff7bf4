"""Checkpoints of real projects to packs and back: nothing is lost on the way."""

from __future__ import annotations

import io
import json

import pytest

from bpk_lite.convert import VALUES_KEY, open_contents
from bpk_lite.pack import Reader
from bpk_lite.store.pytorch import PytorchReader
from tests.convert.test_convert import through
from tests.store.real import LEGACY, LIGHTNING, SAFETENSORS, SCRIPT, member
from tests.support import desktop_module

torch = desktop_module("torch")

pytestmark = pytest.mark.desktop


@pytest.mark.parametrize(
    ("package", "name"), [*LEGACY, *LIGHTNING, SCRIPT, SAFETENSORS], ids=lambda v: v.split("/")[-1]
)
def test_to_a_pack_and_back(package, name):
    """Through .bpk, .safetensors, .bpk and .pt every tensor keeps its name and bytes."""
    blob = member(package, name)
    with open_contents(blob) as source:
        wanted = {one.name: (str(one.dtype), one.shape, one.to_bytes()) for one in source.tensors}
    first, _ = through(blob, "burnpack")
    second, _ = through(through(first, "safetensors")[0], "burnpack")
    found = Reader.from_bytes(second)
    assert wanted == {n: (str(t.dtype), t.shape, t.to_bytes()) for n, t in found.items()}
    last, _ = through(second, "pytorch")
    state = torch.load(io.BytesIO(last), weights_only=True)
    assert wanted.keys() == state.keys()
    with PytorchReader.from_bytes(last) as reader:
        assert wanted == {n: (str(t.dtype), t.shape, t.to_bytes()) for n, t in reader.items()}


@pytest.mark.parametrize(("package", "name"), LIGHTNING, ids=lambda v: v.split("/")[-1])
def test_hyperparameters_go_with_the_weights(package, name):
    """They are in the pack's metadata, and said to be."""
    pack, made = through(member(package, name), "burnpack")
    values = json.loads(Reader.from_bytes(pack).metadata[VALUES_KEY])
    assert values["hparams"]["encoder"]["n_chan_layers"] == [40, 30, 30, 10, 3]
    assert {"epoch", "global_step", "hcqt_params"} < values.keys()
    assert any("hparams" in note for note in made.notes)
