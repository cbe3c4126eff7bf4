"""Stores fill and write torch modules: whose layout, tied weights, all or nothing (S9, S10, S36)."""

from __future__ import annotations

import io

import pytest
import torch
from safetensors.torch import load as st_load
from safetensors.torch import save as st_save
from torch import nn as tnn

import bpk_lite.torch as bt
from bpk_lite import nn
from bpk_lite.store import (
    ApplyError,
    BurnpackStore,
    BurnToPyTorchAdapter,
    HalfPrecisionAdapter,
    PytorchStore,
    PyTorchToBurnAdapter,
    SafetensorsStore,
)


class Net(tnn.Module):
    def __init__(self):
        super().__init__()
        self.seq = tnn.Sequential(tnn.Conv2d(1, 4, 3), tnn.ReLU(), tnn.BatchNorm2d(4))
        self.norm = tnn.LayerNorm(6)
        self.inst = tnn.InstanceNorm2d(4, affine=True)
        self.act = tnn.PReLU()
        self.lstm = tnn.LSTM(6, 5)
        self.attention = tnn.MultiheadAttention(6, 2)
        self.square = tnn.Linear(6, 6)
        self.wide = tnn.Linear(6, 3)


def make(seed=0):
    torch.manual_seed(seed)
    net = Net()
    for tensor in net.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_(torch.randn_like(tensor))
    return net


def same(left, right):
    ours, theirs = left.state_dict(), right.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)


def saved(state):
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def test_a_pytorch_file_fills_a_torch_module_as_it_is():
    """Fused weights, gaps in a Sequential and num_batches_tracked need no conversion (S10, S174)."""
    source, target = make(1), make(2)
    source.seq[2].num_batches_tracked.fill_(7)
    result = PytorchStore(saved(source.state_dict())).apply_to(target)
    assert same(source, target)
    assert result.unused == ()
    assert "lstm.weight_ih_l0" in result.applied


def test_a_burnpack_file_is_in_burns_layout():
    """What was collected from a torch module is Burn's, and comes back."""
    source, target = make(1), make(2)
    blob = BurnpackStore().collect_from(source)
    tensors = BurnpackStore(blob).get_all_tensors()
    assert tensors["wide.weight"].shape == (6, 3)
    assert "lstm.input_gate.input_transform.weight" in tensors
    assert "seq.2.num_batches_tracked" not in tensors
    result = BurnpackStore(blob).apply_to(target)
    assert result.is_success
    assert same(source, target)


def test_burns_linear_takes_it():
    source = tnn.Sequential(tnn.Linear(3, 2))
    ours = nn.Linear(3, 2)
    blob = BurnpackStore().collect_from(source[0])
    BurnpackStore(blob).apply_to(ours)
    x = torch.randn(4, 3)
    torch.testing.assert_close(torch.from_numpy(ours(x.numpy())), source(x).detach())


def test_an_adapter_to_pytorch_writes_torchs_own_names():
    """With the adapter, the file is a state dict (S10); safetensors loads it into torch."""
    source = make(1)
    blob = SafetensorsStore(to_adapter=BurnToPyTorchAdapter()).collect_from(source)
    state = st_load(blob)
    assert state.keys() == source.state_dict().keys()
    assert all(torch.equal(state[k], v) for k, v in source.state_dict().items())
    target = make(2)
    SafetensorsStore(blob, from_adapter=PyTorchToBurnAdapter()).apply_to(target)
    assert same(source, target)


def test_a_safetensors_file_of_pytorch_is_known_by_its_metadata():
    """format=pt means torch's layout; a square weight is not turned over."""
    source, target = make(1), make(2)
    SafetensorsStore(st_save(source.state_dict(), {"format": "pt"})).apply_to(target)
    assert same(source, target)


def test_half_precision_out_and_back():
    source, target = make(1), make(2)
    blob = BurnpackStore(to_adapter=HalfPrecisionAdapter()).collect_from(source)
    assert str(BurnpackStore(blob).get_tensor("wide.weight").dtype) == "F16"
    parameter = target.wide.weight
    result = BurnpackStore(blob).apply_to(target)
    assert target.wide.weight is parameter
    assert parameter.dtype == torch.float16
    assert any("wide.weight" in row for row in result.converted)
    target = make(2)
    BurnpackStore(blob, from_adapter=HalfPrecisionAdapter()).apply_to(target)
    assert target.wide.weight.dtype == torch.float32
    assert torch.equal(target.wide.weight, source.wide.weight.half().float())


def test_what_does_not_fit_changes_nothing():
    source, target = make(1), make(2)
    state = source.state_dict()
    state["wide.weight"] = torch.zeros(3, 7)
    before = {name: tensor.clone() for name, tensor in target.state_dict().items()}
    with pytest.raises(ApplyError, match=r"wide\.weight"):
        PytorchStore(saved(state)).apply_to(target)
    assert all(torch.equal(before[k], v) for k, v in target.state_dict().items())


def test_requires_grad_and_the_optimizers_view_stay():
    """Parameters stay the objects they are (S36)."""
    source, target = make(1), make(2)
    target.wide.weight.requires_grad_(False)
    optimizer = torch.optim.SGD(target.parameters(), lr=0.1)
    parameter = target.square.weight
    PytorchStore(saved(source.state_dict())).apply_to(target)
    assert target.wide.weight.requires_grad is False
    assert any(parameter is one for one in optimizer.param_groups[0]["params"])
    assert torch.equal(parameter, source.square.weight)


class Tied(tnn.Module):
    def __init__(self):
        super().__init__()
        self.embed = tnn.Embedding(5, 4)
        self.head = tnn.Linear(4, 5, bias=False)
        self.head.weight = self.embed.weight


def test_tied_weights_by_policy(caplog):
    """Copy stores both, first stores one, error raises; one of them fills the module."""
    caplog.set_level("INFO", "bpk_lite")
    source = Tied()
    both = BurnpackStore(BurnpackStore().collect_from(source)).get_all_tensors()
    assert both["embed.weight"].shape == (5, 4)
    assert both["head.weight"].shape == (4, 5)
    assert "head.weight and embed.weight are one parameter" in caplog.text
    with pytest.raises(ValueError, match="are one parameter"):
        BurnpackStore().collect_from(bt.StoreTarget(source, tied="error"))
    with pytest.raises(ValueError, match="tied is one of"):
        bt.StoreTarget(source, tied="twice")
    blob = BurnpackStore().collect_from(bt.StoreTarget(source, tied="first"))
    assert BurnpackStore(blob).keys() == ["embed.weight"]
    target = Tied()
    BurnpackStore(blob).apply_to(target)
    assert torch.equal(target.head.weight, source.embed.weight)
    assert target.head.weight is target.embed.weight
    only_head = {"head.weight": source.head.weight.detach() + 1}
    PytorchStore(saved(only_head)).apply_to(target)
    assert torch.equal(target.embed.weight, source.embed.weight + 1)


def test_a_burn_file_goes_into_torch():
    """Burn's names and layout find their way by the types of the modules."""
    from tests.store.zoo import FILES

    target = tnn.Linear(3, 2)
    BurnpackStore(FILES / "linear.bpk").apply_to(target)
    ours = nn.Linear(3, 2)
    BurnpackStore(FILES / "linear.bpk").apply_to(ours)
    x = torch.randn(4, 3)
    torch.testing.assert_close(target(x).detach(), torch.from_numpy(ours(x.numpy())))


def test_of_two_tensors_for_one_parameter_the_first_path_decides():
    """A file may have both, and they may differ; the order is the module's."""
    target = Tied()
    state = {"head.weight": torch.zeros(5, 4), "embed.weight": torch.ones(5, 4)}
    PytorchStore(saved(state)).apply_to(target)
    assert torch.equal(target.head.weight, torch.ones(5, 4))


def test_counts_of_batches_may_be_missing():
    """Files from Burn have none; a strict load leaves them (S10)."""
    source, target = make(1), make(2)
    state = {k: v for k, v in source.state_dict().items() if not k.endswith("num_batches_tracked")}
    target.seq[2].num_batches_tracked.fill_(3)
    result = PytorchStore(saved(state)).apply_to(target)
    assert result.missing == ()
    assert target.seq[2].num_batches_tracked == 3


def test_ids_come_with_the_weights():
    """What is saved again has the ids of the pack that filled the module (S31)."""
    blob = BurnpackStore().collect_from(make(1))
    target = make(2)
    BurnpackStore(blob).apply_to(target)
    again = BurnpackStore(BurnpackStore().collect_from(target)).get_all_tensors()
    wanted = {name: t.param_id for name, t in BurnpackStore(blob).get_all_tensors().items()}
    assert wanted == {name: t.param_id for name, t in again.items()}
    assert len(set(wanted.values())) == len(wanted)
