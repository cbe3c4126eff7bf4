"""Loading into a module is all or nothing, and one error lists everything."""

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import DType, RecordError, Tensor
from bpk_lite.records import ModuleRecord


class Net(nn.Module):
    def __init__(self):
        self.fc1 = nn.Linear(2, 3)
        self.norm = nn.BatchNorm(3)
        self.fc2 = nn.Linear(3, 1, bias=False)


def ones(net):
    """Return a tensor of ones for each param, with ids from 100."""
    return {
        path: Tensor.from_array(path, np.ones(param.saved_shape, "<f4"), param_id=100 + place)
        for place, (path, param) in enumerate(net.named_params().items())
    }


def ids(net):
    return [param.id for param in net.named_params().values()]


def test_values_and_ids_are_taken_by_path():
    """Params are matched by path alone, in whatever order the tensors come (R25, R26)."""
    net = Net()
    tensors = ones(net)
    report = net.load_tensors(dict(reversed(tensors.items())))
    assert tuple(net.named_params()) == report.loaded
    assert ((), ()) == (report.missing, report.unused)
    assert all((param.value == 1).all() for param in net.named_params().values())


def test_running_states_keep_their_ids():
    """Every param takes the tensor's id, except running states (R34)."""
    net = Net()
    own = ids(net)
    net.load_tensors(ones(net))
    assert [100, 101, 102, 103, own[4], own[5], 106] == ids(net)
    assert ids(net) == [tensor.param_id for tensor in net.tensors()]


def test_one_error_lists_everything():
    """Missing, unused and mismatched tensors come in one error; nothing changed (R30 to R33)."""
    net = Net()
    before = ids(net)
    tensors = ones(net)
    tensors["fc1.wieght"] = tensors.pop("fc1.weight")
    tensors["norm.gamma"] = Tensor.from_array("norm.gamma", np.ones(4, "<f4"))
    tensors["norm.beta"] = Tensor.from_array("norm.beta", np.ones(3, "<i4"))
    with pytest.raises(RecordError) as caught:
        net.load_tensors(tensors)
    expected = """\
the tensors do not fit Net; nothing was loaded
missing, 1 params without a tensor:
  fc1.weight: expected F32 [2, 3] (the closest name is 'fc1.wieght')
unused, 1 tensors without a param:
  fc1.wieght: found F32 [2, 3]
mismatched, 2 tensors of another shape or kind:
  norm.gamma: expected float [3], found F32 [4]
  norm.beta: expected float [3], found I32 [3]
allow_partial=True leaves params without a tensor as they are; \
allow_unused=True ignores tensors without a param; \
build the module with the sizes that the file has; \
dtype_policy="module" converts what has another dtype"""
    assert expected == str(caught.value)
    assert before == ids(net)
    assert not any(param.materialised for param in net.named_params().values())


class Renamed(nn.Module):
    """The sizes of another net, with a layer of another name and one more."""

    def __init__(self):
        self.fc_1 = nn.Linear(2, 3)
        self.norm = nn.BatchNorm(4)
        self.fc2 = nn.Linear(4, 1, bias=False)
        self.head = nn.Linear(1, 1, bias=False)


def test_the_wrong_module_is_told_apart_and_unchanged():
    """A whole record for another module: three lists in one text, close names, nothing changed (R30)."""
    net = Renamed()
    before = {path: (p.id, p.value.tobytes()) for path, p in net.named_params().items()}
    record = ModuleRecord.from_bytes(Net().into_record().into_bytes())
    with pytest.raises(RecordError) as caught:
        net.load_record(record)
    lines = str(caught.value).splitlines()
    assert [
        "the tensors do not fit Renamed; nothing was loaded",
        "missing, 3 params without a tensor:",
        "  fc_1.weight: expected F32 [2, 3] (the closest name is 'fc1.weight')",
        "  fc_1.bias: expected F32 [3] (the closest name is 'fc1.bias')",
    ] == lines[:4]
    assert lines[4].startswith("  head.weight: expected F32 [1, 1]")
    assert [
        "unused, 2 tensors without a param:",
        "  fc1.bias: found F32 [3]",
        "  fc1.weight: found F32 [2, 3]",
        "mismatched, 5 tensors of another shape or kind:",
        "  norm.gamma: expected float [4], found F32 [3]",
        "  norm.beta: expected float [4], found F32 [3]",
        "  norm.running_mean: expected float [4], found F32 [3]",
        "  norm.running_var: expected float [4], found F32 [3]",
        "  fc2.weight: expected float [4, 1], found F32 [3, 1]",
    ] == lines[5:-1]
    assert before == {path: (p.id, p.value.tobytes()) for path, p in net.named_params().items()}


def test_partial_loads_the_rest():
    """With `allow_partial`, params without a tensor keep value and id (R26, R31)."""
    net = Net()
    own = net.fc2.weight.id
    tensors = ones(net)
    del tensors["fc2.weight"]
    with pytest.raises(RecordError, match="missing, 1"):
        net.load_tensors(tensors)
    assert ("fc2.weight",) == net.load_tensors(tensors, allow_partial=True).missing
    assert own == net.fc2.weight.id
    assert 100 == net.fc1.weight.id


def test_unused_may_be_allowed():
    """With `allow_unused`, tensors without a param are ignored and reported, sorted (R30)."""
    net = Net()
    tensors = ones(net)
    tensors["z"] = tensors["a"] = Tensor.from_array("z", np.ones(1, "<f4"))
    with pytest.raises(RecordError, match="unused, 2"):
        net.load_tensors(tensors)
    assert ("a", "z") == net.load_tensors(tensors, allow_unused=True).unused


def test_mismatch_is_never_allowed():
    """A tensor of another shape is an error even when everything else is allowed (R31)."""
    net = Net()
    tensors = {"fc1.weight": Tensor.from_array("fc1.weight", np.ones((5, 5), "<f4"))}
    with pytest.raises(
        RecordError, match=r"fc1.weight: expected float \[2, 3\], found F32 \[5, 5\]"
    ):
        net.load_tensors(tensors, allow_partial=True, allow_unused=True)


def test_long_lists_are_cut():
    """A list of more than 20 entries shows 20 and counts the rest."""
    tensors = {f"t{n}": Tensor.from_array(f"t{n}", np.ones(1, "<f4")) for n in range(23)}
    with pytest.raises(RecordError, match="… and 3 more"):
        nn.Relu().load_tensors(tensors)


@pytest.mark.parametrize("used", [False, True])
def test_col_layout_is_compared_in_save_form(used):
    """A ``Col`` linear takes its own record, used before or not, and refuses row form (R27).

    Burn compares the live shape of a used param and so fails on the first and, worse, accepts the
    second.
    """
    layer = nn.Linear(2, 3, layout="Col", bias=False)
    if used:
        layer(np.ones((1, 2), "f4"))
    with pytest.raises(RecordError, match="transpose"):
        layer.load_tensors({"weight": Tensor.from_array("weight", np.ones((2, 3), "<f4"))})
    saved = np.arange(6, dtype="<f4").reshape(3, 2)
    layer.load_tensors({"weight": Tensor.from_array("weight", saved)})
    assert saved.sum(axis=1)[None].tolist() == layer(np.ones((1, 2), "f4")).tolist()


def test_shared_param_takes_its_first_tensor():
    """A param with two paths takes the tensor of the first, and needs both (R19)."""

    class Tied(nn.Module):
        def __init__(self):
            self.a = nn.Linear(1, 1, bias=False)
            self.b = self.a

    tied = Tied()
    tensors = {
        "a.weight": Tensor.from_array("a.weight", np.full((1, 1), 1, "<f4")),
        "b.weight": Tensor.from_array("b.weight", np.full((1, 1), 2, "<f4")),
    }
    tied.load_tensors(tensors)
    assert 1 == tied.b.weight.value.item()
    del tensors["b.weight"]
    with pytest.raises(RecordError, match=r"b\.weight"):
        tied.load_tensors(tensors)


def test_loading_reads_nothing():
    """Loading a module reads no tensor; each is read when its layer first computes."""
    read = []

    def provider(name):
        def provide():
            read.append(name)
            return np.zeros((2, 2), "<f4")

        return provide

    class Pair(nn.Module):
        def __init__(self):
            self.one = nn.Linear(2, 2, bias=False)
            self.two = nn.Linear(2, 2, bias=False)

    pair = Pair()
    names = ["one.weight", "two.weight"]
    pair.load_tensors({n: Tensor.deferred(n, DType.F32, (2, 2), provider(n)) for n in names})
    assert [] == read
    pair.two(np.ones((1, 2), "f4"))
    pair.two(np.ones((1, 2), "f4"))
    assert ["two.weight"] == read
