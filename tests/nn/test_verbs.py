"""What can be done with all params of a module at once."""

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import DType
from tests.nn.zoo import Fields


def test_visit_meets_every_leaf_in_order():
    """The visitor gets path and param of each leaf, a shared one under each of its paths."""
    linear = nn.Linear(1, 1, bias=False)
    net = Fields(norm=nn.BatchNorm(1), left=linear, right=linear)
    seen = []
    net.visit(lambda path, param: seen.append((path, param.running)))
    expected = ["norm.gamma", "norm.beta", "norm.running_mean", "norm.running_var"]
    assert [*expected, "left.weight", "right.weight"] == [path for path, _ in seen]
    assert [False, False, True, True, False, False] == [running for _, running in seen]


def test_map_replaces_values_and_keeps_ids():
    """The mapper's results become the values, of any dtype of their kind; ids stay."""
    net = nn.Linear(2, 1)
    ids = [net.weight.id, net.bias.id]
    assert net is net.map(lambda path, value: np.full(value.shape, len(path), "<f8"))
    assert ([[6.0], [6.0]], [4.0]) == (net.weight.value.tolist(), net.bias.value.tolist())
    assert (DType.F64, ids) == (net.weight.dtype, [net.weight.id, net.bias.id])


def test_map_meets_a_shared_param_once():
    """A shared param is mapped once, under its first path, and params come in order."""
    linear = nn.Linear(1, 1)
    net = Fields(norm=nn.RmsNorm(1), left=linear, right=linear)
    seen = []
    net.map(lambda path, value: (seen.append(path), value)[1])
    assert ["norm.gamma", "left.weight", "left.bias"] == seen


@pytest.mark.parametrize("second", [np.zeros(2, "<f4"), np.zeros(1, "<i4"), None])
def test_map_is_all_or_nothing(second):
    """When a result does not fit, or the mapper fails, no param changes."""
    net = nn.Linear(1, 1)
    before = net.weight.value

    def mapper(path, value):
        if path == "weight":
            return value + 1
        if second is None:
            raise ValueError("cannot hold")
        return second

    with pytest.raises(ValueError, match="cannot hold"):
        net.map(mapper)
    assert before is net.weight.value


def test_freezing_spares_running_states():
    """`no_grad` freezes all, `require_grad` thaws all but running states."""
    norm = nn.BatchNorm(1)
    assert norm is norm.no_grad()
    assert not any(param.require_grad for param in norm.named_params().values())
    assert norm is norm.require_grad()
    assert [True, True, False, False] == [
        param.require_grad for param in norm.named_params().values()
    ]


def test_roots_need_not_be_modules():
    """A param, or a list of modules, is saved and loaded as a root (R14)."""
    param = nn.Param((1,), nn.init.Zeros())
    assert [""] == list(nn.into_record(param).tensors)
    layers = [nn.Linear(1, 1) for _ in range(11)]
    record = nn.into_record(layers, nn.ParamGroup.regex("weight"))
    assert [f"{index}.weight" for index in range(11)] == list(record.tensors)
    report = nn.load_tensors(layers, record.tensors, allow_partial=True)
    assert 11 == len(report.loaded)


def test_odd_booleans_load_verbatim_and_are_true():
    """Bytes of a Bool(Native) that are neither 0 nor 1 are saved as they were, and are true (R29)."""
    from bpk_lite.pack import Tensor

    param = nn.Param((3,), nn.init.Zeros(), dtype=DType.BOOL)
    param.load(Tensor.from_bytes("m", DType.BOOL, (3,), bytes([0, 2, 255])))
    assert [False, True, True] == param.value.tolist()
    assert bytes([0, 2, 255]) == param.tensor("m").to_bytes()
