"""The commands that write: convert, rename, select, merge, set-metadata."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn as tnn

import bpk_lite as bpk
from bpk_lite.pack import Reader
from tests.cli.test_commands import run

pytestmark = pytest.mark.desktop


@pytest.fixture
def net(tmp_path):
    """A checkpoint as a training script saves it."""
    torch.manual_seed(0)
    module = tnn.Sequential(tnn.Linear(3, 2), tnn.LayerNorm(2))
    torch.save({"model": module.state_dict(), "epoch": 3}, tmp_path / "net.pt")
    return module


def opened(path):
    with Reader.from_file(path) as pack:
        return {name: tensor.numpy() for name, tensor in pack.items()}


def test_pytorch_to_burn_and_back(net, tmp_path):
    """Two commands; what came out is what went in, and what is no tensor is kept."""
    args = ("--top-level-key", "model", "--from-adapter", "pytorch", "--map", "^0=fc")
    status, out, err = run("convert", tmp_path / "net.pt", tmp_path / "net.bpk", *args)
    assert (0, "") == (status, out), err
    found = opened(tmp_path / "net.bpk")
    assert {"fc.weight": (3, 2), "fc.bias": (2,), "1.gamma": (2,), "1.beta": (2,)} == {
        name: array.shape for name, array in found.items()
    }
    with Reader.from_file(tmp_path / "net.bpk") as pack:
        assert {"epoch": 3} == json.loads(pack.metadata["pytorch.values"])
    back = ("--to-adapter", "pytorch", "--map", "^fc=0")
    assert 0 == run("convert", tmp_path / "net.bpk", tmp_path / "back.pt", *back)[0]
    state = torch.load(tmp_path / "back.pt", weights_only=True)
    assert all(torch.equal(state[name], value) for name, value in net.state_dict().items())


def test_a_dry_run_shows_and_writes_nothing(net, tmp_path):
    """Old and new names, shapes and dtypes; no file."""
    status, out, _ = run(
        "convert", tmp_path / "net.pt", tmp_path / "x.bpk", "--dry-run", "--from-adapter",
        "pytorch", "--half", "--filter", r"\.weight$",
    )  # fmt: skip
    assert 0 == status
    assert "model.1.gamma" in out
    assert "[2, 3] → [3, 2]" in out
    assert "F32 → F16" in out
    assert "left out  model.0.bias" in out
    assert not (tmp_path / "x.bpk").exists()


def test_values_that_half_precision_cannot_hold_are_counted(tmp_path):
    """On stderr, per tensor (bug F4)."""
    bpk.save_file({"fc.weight": np.full((2, 2), 1e6, "f4")}, tmp_path / "a.bpk")
    status, _, err = run("convert", tmp_path / "a.bpk", tmp_path / "b.bpk", "--half")
    assert 0 == status
    assert "fc.weight, from F32 to F16: 4 values became infinite, 0 became 0" in err


def test_an_existing_file_stays(net, tmp_path):
    (tmp_path / "x.bpk").write_text("mine")
    status, _, err = run("convert", tmp_path / "net.pt", tmp_path / "x.bpk")
    assert 2 == status
    assert "--overwrite" in err
    assert "mine" == (tmp_path / "x.bpk").read_text()
    assert 0 == run("convert", tmp_path / "net.pt", tmp_path / "x.bpk", "--overwrite")[0]
    assert "model.0.weight" in opened(tmp_path / "x.bpk")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--map", "nothing"), "has no '='"),
        (("--map", "(=x"), "regular expression"),
        (("--from-adapter", "burn"), "--from-adapter is pytorch"),
        (("--from-adapter", "pytorch", "--to-adapter", "pytorch"), "undo each other"),
        (("--module", "0=Lin"), "'Lin' is not among"),
        (("--dtype", "F99"), "F99"),
        (("--top-level-key", "none"), "there are epoch, model"),
        (("--map", r"\d=x"), "would both be named"),
        (("--filter", "^zzz"), "there are model.0.bias"),
    ],
)
def test_what_cannot_be_done_is_one_line(net, tmp_path, args, words):
    """Status 2, and nothing is written."""
    status, out, err = run("convert", tmp_path / "net.pt", tmp_path / "x.bpk", *args)
    assert (2, "") == (status, out)
    assert words in err.splitlines()[-1]
    assert not (tmp_path / "x.bpk").exists()


@pytest.fixture
def two(tmp_path):
    a = bpk.save_file({"a.w": np.ones(2)}, tmp_path / "a.bpk", {"k": "v"}, scalars={"s": 1})
    b = bpk.save_file({"b.w": np.zeros(3)}, tmp_path / "b.bpk", {"k": "v", "l": "w"})
    return a, b


def test_rename_and_select_keep_the_rest(two, tmp_path):
    """Scalars and metadata stay."""
    assert 0 == run("rename", two[0], tmp_path / "r.bpk", "--map", r"^a\.=c.")[0]
    with Reader.from_file(tmp_path / "r.bpk") as pack:
        assert ["c.w"] == list(pack)
        assert {"k": "v"} == dict(pack.metadata)
        assert 1 == pack.scalars["s"].value
    assert 0 == run("merge", *two, "-o", tmp_path / "m.bpk")[0]
    assert 0 == run("select", tmp_path / "m.bpk", tmp_path / "s.bpk", "--filter", "^b")[0]
    with Reader.from_file(tmp_path / "s.bpk") as pack:
        assert ["b.w"] == list(pack)
        assert {"k": "v", "l": "w"} == dict(pack.metadata)
        assert 1 == pack.scalars["s"].value
    status, _, err = run("select", tmp_path / "m.bpk", tmp_path / "n.bpk", "--filter", "^z")
    assert (2, True) == (status, "no tensor" in err)


def test_merging_two_of_one_name_is_an_error(two, tmp_path):
    status, _, err = run("merge", two[0], two[0], two[1], "-o", tmp_path / "m.bpk")
    assert 0 == run("convert", two[0], tmp_path / "c.bpk")[0]
    status, _, err = run("merge", two[0], tmp_path / "c.bpk", "-o", tmp_path / "m.bpk")
    assert 2 == status
    assert "tensor 'a.w' is in" in err


@pytest.mark.parametrize(("command", "option"), [("rename", "--map"), ("select", "--filter")])
def test_a_command_without_its_option_is_a_mistake(two, tmp_path, command, option):
    """It would only copy."""
    status, _, err = run(command, two[0], tmp_path / "x.bpk")
    assert (2, f"bpk: nothing to do: give {option}\n") == (status, err)
    assert not (tmp_path / "x.bpk").exists()


def test_set_metadata(two, tmp_path):
    """Entries are added, replaced and removed; the tensors' bytes stay."""
    assert (
        0 == run("set-metadata", two[1], two[1], "k=x=y", "m=1", "--remove", "l", "--overwrite")[0]
    )
    with Reader.from_file(two[1]) as pack:
        assert {"k": "x=y", "m": "1"} == dict(pack.metadata)
        assert [0, 0, 0] == pack["b.w"].numpy().tolist()
    status, _, err = run("set-metadata", two[1], tmp_path / "x.bpk", "--remove", "zz")
    assert (2, True) == (status, "'zz'" in err)
    assert 0 == run("set-metadata", two[1], tmp_path / "x.bpk", "--clear")[0]
    with Reader.from_file(tmp_path / "x.bpk") as pack:
        assert {} == dict(pack.metadata)
