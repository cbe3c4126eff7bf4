"""Checkpoints of real projects, read without PyTorch as PyTorch reads them (S116 to S150)."""

from __future__ import annotations

import io
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

from bpk_lite.store import (
    PytorchReader,
    PytorchStore,
    SafetensorsFile,
    load_config,
    read_pickle_data,
)
from tests.store.real import LEGACY, LIGHTNING, SAFETENSORS, SCRIPT, member
from tests.support import desktop_module

torch = desktop_module("torch")

pytestmark = [
    pytest.mark.desktop,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch about TorchScript itself
]


class StandIn:
    """Takes the place of omegaconf's classes, which PyTorch has to have and we do not."""


CLASSES = [
    "omegaconf.dictconfig.DictConfig", "omegaconf.listconfig.ListConfig", "omegaconf.nodes.AnyNode",
    "omegaconf.base.ContainerMetadata", "omegaconf.base.Metadata",
]  # fmt: skip
SAFE = [(StandIn, name) for name in CLASSES] + [list, int, dict, defaultdict, (Any, "typing.Any")]


def theirs(blob):
    """Return the object that PyTorch loads."""
    with torch.serialization.safe_globals(SAFE):
        return torch.load(io.BytesIO(blob), "cpu", weights_only=True)


def flat(value, prefix=""):
    """Return the tensors in dicts of dicts, by dotted name."""
    found = {}
    for key, one in value.items():
        if isinstance(one, torch.Tensor):
            found[f"{prefix}{key}"] = one
        elif isinstance(one, dict):
            found |= flat(one, f"{prefix}{key}.")
    return found


def same(ours, wanted):
    """Compare names, dtypes, shapes and bytes."""
    assert sorted(wanted) == list(ours)
    for name, tensor in wanted.items():
        one = ours[name]
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        assert (tuple(tensor.shape), raw) == (one.shape, one.to_bytes()), name
        assert tensor.is_floating_point() == (one.dtype.kind == "float")


@pytest.mark.parametrize(("package", "name"), [*LEGACY, *LIGHTNING], ids=lambda v: v.split("/")[-1])
def test_tensors_are_those_that_torch_loads(package, name):
    """Nine checkpoints from before PyTorch 1.6, two of Lightning: names, shapes and bytes."""
    blob = member(package, name)
    with PytorchReader.from_bytes(blob) as reader:
        assert ("zip" if name.endswith("ckpt") else "legacy") == reader.info.kind
        assert {} == reader.unsupported
        same(reader, flat(theirs(blob)))


@dataclass
class Encoder:
    """Some of what the Lightning checkpoints say of their model."""

    n_chan_layers: list[int]
    p_dropout: float
    residual: bool
    final_norm: str | None


@dataclass
class Hyperparameters:
    """Likewise."""

    encoder: Encoder
    pitch_shift: dict[str, int]


@pytest.mark.parametrize(("name", "norm"), [(LIGHTNING[0], None), (LIGHTNING[1], "softmax")])
def test_hyperparameters_are_there(name, norm):
    """Plain values, also of omegaconf's configs, and a dataclass of them (S152, S153)."""
    found = read_pickle_data(member(*name))
    assert {"epoch", "global_step", "hparams", "hcqt_params", "state_dict"} < found.keys()
    assert theirs(member(*name))["hcqt_params"] == found["hcqt_params"]
    encoder = Encoder([40, 30, 30, 10, 3], 0.2, True, norm)
    wanted = Hyperparameters(encoder, {"min_steps": -16, "max_steps": 16})
    assert wanted == load_config(Hyperparameters, member(*name), "hparams")


def test_a_lightning_checkpoint_fills_by_its_top_level_key():
    """Under the key the names are those of the model (S109, S139)."""
    blob = member(*LIGHTNING[0])
    wanted = theirs(blob)["state_dict"]
    store = PytorchStore(blob, top_level_key="state_dict", map_indices_contiguous=False)
    same(store.get_all_tensors(), wanted)


def test_a_torchscript_archive_has_its_state_dict():
    """Parameters and buffers by attribute path; beside them tensors that are plain attributes."""
    blob = member(*SCRIPT)
    wanted = torch.jit.load(io.BytesIO(blob)).state_dict()
    with PytorchReader.from_bytes(blob) as reader:
        assert ["_context", "_state"] == sorted(reader.keys() - wanted.keys())
        same({name: reader[name] for name in reader if name in wanted}, wanted)


def test_a_safetensors_file_is_what_its_library_reads():
    """Names, shapes and bytes."""
    from safetensors.torch import load

    blob = member(*SAFETENSORS)
    with SafetensorsFile.from_bytes(blob) as file:
        same({name: file[name] for name in sorted(file)}, load(blob))
