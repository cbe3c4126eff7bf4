"""TorchScript archives: their tensors by attribute path, without running their code (S119, S138)."""

from __future__ import annotations

import io
import warnings

import pytest

from bpk_lite.store import PytorchReader, read_pickle_data
from tests.support import desktop_module

torch = desktop_module("torch")

pytestmark = [
    pytest.mark.desktop,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch about TorchScript itself
]


class Inner(torch.nn.Module):
    """A layer, a buffer, one that is not persistent, and a setting."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 3)
        self.register_buffer("count", torch.arange(3))
        self.register_buffer("mask", torch.tensor([True, False, True]), persistent=False)
        self.scale = 4

    def forward(self, x):
        return (self.fc(x) + self.count) * self.mask * self.scale


class Net(torch.nn.Module):
    """Children by attribute, in a list, in a sequence with a gap, and one under two names."""

    def __init__(self):
        super().__init__()
        self.first = Inner()
        self.blocks = torch.nn.ModuleList([Inner(), Inner().half()])
        self.seq = torch.nn.Sequential(
            torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.BatchNorm1d(3)
        )
        self.tied = self.first.fc

    def forward(self, x):
        return self.seq(self.first(x)) + self.tied(x)


def archive(how):
    """Return a scripted or traced module and its file."""
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.jit.script(Net()) if how == "script" else torch.jit.trace(
            Net().eval(), torch.ones(4, 2)
        )  # fmt: skip
        file = io.BytesIO()
        torch.jit.save(made, file)
    return made, file.getvalue()


@pytest.mark.parametrize("how", ["script", "trace"])
def test_names_and_values_are_those_of_the_state_dict(how):
    """Scripted and traced; shared children under both names; buffers as torch keeps them."""
    made, blob = archive(how)
    wanted = made.state_dict()
    with PytorchReader.from_bytes(blob) as reader:
        assert sorted(wanted) == list(reader)
        assert {} == reader.unsupported
        for name, tensor in wanted.items():
            raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            assert (tuple(tensor.shape), raw) == (reader[name].shape, reader[name].to_bytes())
        assert "F16" == str(reader["blocks.1.fc.weight"].dtype)


def test_settings_are_there_too():
    """Attributes that are no tensors are plain values (S152)."""
    _, blob = archive("script")
    assert 4 == read_pickle_data(blob)["first"]["scale"]
