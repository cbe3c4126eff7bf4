"""Torch modules into records and back (R7, R11 to R34, S9, S10, S36)."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from torch import nn

import bpk_lite.torch as bt
from bpk_lite import nn as ours
from bpk_lite.pack import DType, ProviderError, RecordError, Tensor
from bpk_lite.records import ModuleRecord


def net():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.PReLU(), nn.Linear(4, 2))


def values(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def through_bytes(record):
    return ModuleRecord.from_bytes(record.into_bytes())


def test_a_linear_weight_lies_transposed_in_a_record():
    """Burn's linear weight is [in, out], torch's [out, in] (R91, S10)."""
    layer = nn.Linear(3, 2)
    record = bt.into_record(layer)
    assert (3, 2) == record["weight"].shape
    assert layer.weight.T.tolist() == record["weight"].numpy().tolist()


def test_a_record_of_torch_fits_the_same_module_of_ours():
    """Names, layouts and order are those of our modules, which are Burn's (R11, R14)."""

    class Theirs(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 2, 3)
            self.norm = nn.BatchNorm2d(2)
            self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 1)])

    class Ours(ours.Module):
        def __init__(self):
            self.conv = ours.Conv2d(1, 2, (3, 3))
            self.norm = ours.BatchNorm(2)
            self.layers = [ours.Linear(4, 4), ours.Linear(4, 1)]

    module, record = Ours(), bt.into_record(Theirs())
    module.load_record(through_bytes(record))
    assert list(module.named_params()) == list(record.tensors)
    x = np.ones((2, 4), "f4")
    back = Theirs()
    bt.load_record(back, module.into_record())
    expected = back.layers[1](back.layers[0](torch.from_numpy(x)))
    np.testing.assert_allclose(
        module.layers[1](module.layers[0](x)), expected.detach().numpy(), rtol=1e-5
    )


def test_batches_tracked_are_left_out_and_left_alone(caplog):
    """Burn has no ``num_batches_tracked``: it is named, not stored, and loading keeps it."""
    module = net()
    module(torch.randn(5, 3))
    with caplog.at_level("INFO", "bpk_lite"):
        record = bt.into_record(module)
    assert "1.num_batches_tracked is not part of a record" in caplog.text
    assert {"1.num_batches_tracked"} == set(bt.layout(module).left_out)
    assert "1.num_batches_tracked" not in record.tensors
    other = net()
    other[1].num_batches_tracked.fill_(7)
    report = bt.load_record(other, record)
    assert ((), 7) == (report.missing, int(other[1].num_batches_tracked))


def test_ids_are_stable_and_adopted():
    """A parameter has one id for its life; loading gives it the record's, not a buffer (R7, R34)."""
    module, other = net(), net()
    first = {n: t.param_id for n, t in bt.into_record(module).tensors.items()}
    assert first == {n: t.param_id for n, t in bt.into_record(module).tensors.items()}
    own = {n: t.param_id for n, t in bt.into_record(other).tensors.items()}
    assert not set(first.values()) & set(own.values())
    bt.load_record(other, bt.into_record(module))
    found = {n: t.param_id for n, t in bt.into_record(other).tensors.items()}
    running = {"1.running_mean", "1.running_var"}
    assert {n: own[n] if n in running else i for n, i in first.items()} == found


def test_ids_survive_a_move_of_the_module():
    """Changing the dtype makes new buffers, and yet the ids stay."""
    module = net()
    before = {n: t.param_id for n, t in bt.into_record(module).tensors.items()}
    module.double()
    assert before == {n: t.param_id for n, t in bt.into_record(module).tensors.items()}


def test_ids_do_not_keep_modules_alive():
    """What knows the ids holds on to no parameter."""
    from bpk_lite.torch import _ids

    gc.collect()
    before = len(_ids._of_parameters), len(_ids._of_buffers)
    module = net()
    bt.into_record(module)
    assert before < (len(_ids._of_parameters), len(_ids._of_buffers))
    del module
    gc.collect()
    assert before == (len(_ids._of_parameters), len(_ids._of_buffers))


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
     torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8, torch.bool],
    ids=str,
)  # fmt: skip
def test_every_dtype_goes_and_comes_back(dtype):
    """All thirteen dtypes of burnpack arrive bit for bit, in any layout (R12)."""

    class Holder(nn.Module):
        def __init__(self, value):
            super().__init__()
            self.register_buffer("plain", value)
            self.register_buffer("strided", value.T[:, :1])
            self.register_buffer("scalar", value[0, 0])
            self.register_buffer("empty", value[:0])

    start = (torch.arange(6) % 2).reshape(2, 3).to(dtype)
    module, other = Holder(start), Holder(torch.zeros(2, 3, dtype=dtype))
    record = through_bytes(bt.into_record(module))
    assert {dtype: record["plain"].dtype} == {
        torch.from_dlpack(record["plain"]).dtype: record["plain"].dtype
    }
    bt.load_record(other, record)
    assert same(values(module), values(other))


def test_a_bool_of_another_byte_is_true():
    """A stored 2 is what is not zero, so true (R29); torch would misbehave with it."""
    module = nn.Module()
    module.register_buffer("flag", torch.zeros(3, dtype=torch.bool))
    bt.load_record(
        module, ModuleRecord([Tensor.from_bytes("flag", DType.BOOL, (3,), bytes([0, 2, 1]))])
    )
    assert [0, 1, 1] == module.flag.view(torch.uint8).tolist()


def test_loading_keeps_objects_devices_and_requires_grad():
    """Optimizers keep knowing the parameters; a frozen one stays frozen (R26, S36)."""
    module, other = net(), net()
    other[0].weight.requires_grad_(False)
    before = {name: id(value) for name, value in other.state_dict(keep_vars=True).items()}
    bt.load_record(other, bt.into_record(module))
    assert before == {name: id(value) for name, value in other.state_dict(keep_vars=True).items()}
    assert (False, True) == (other[0].weight.requires_grad, other[3].weight.requires_grad)


def test_loading_keeps_channels_last():
    """The order of axes in memory is the module's own."""
    module = nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last)
    expected = module.weight.clone()
    bt.load_record(module, through_bytes(bt.into_record(module)))
    assert torch.equal(expected, module.weight)
    assert module.weight.is_contiguous(memory_format=torch.channels_last)


def test_a_record_that_does_not_fit_changes_nothing_and_lists_everything():
    """Missing, unused and mismatched come together, all by Burn's paths (R30)."""
    module = net()
    before = values(module)
    tensors = dict(bt.into_record(net()).tensors)
    tensors["3.weigth"] = tensors.pop("3.weight").replace(name="3.weigth")
    tensors["0.weight"] = Tensor.from_array("0.weight", np.zeros((4, 3), "f4"))
    with pytest.raises(RecordError, match="transpose") as caught:
        bt.load_record(module, ModuleRecord(tensors.values()))
    error = caught.value
    assert (("3.weight",), ("3.weigth",), ("0.weight",)) == (
        error.missing,
        error.unused,
        error.mismatched,
    )
    assert same(before, values(module))


class Renamed(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc_1 = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(5)
        self.head = nn.Linear(2, 2, bias=False)


def test_the_wrong_module_is_told_apart_and_unchanged():
    """A whole record for another module: three lists in one text, close names, nothing changed (R30)."""
    module = Renamed()
    module.fc_1.bias.requires_grad_(False)
    before, ids = values(module), [t.param_id for t in bt.into_record(module).tensors.values()]
    other = nn.ModuleDict({"fc1": nn.Linear(3, 4), "norm": nn.BatchNorm1d(4)})
    with pytest.raises(RecordError) as caught:
        bt.load_record(module, through_bytes(bt.into_record(other)))
    lines = str(caught.value).splitlines()
    assert [
        "the tensors do not fit Renamed; nothing was loaded",
        "missing, 3 params without a tensor:",
        "  fc_1.weight: expected F32 [3, 4] (the closest name is 'fc1.weight')",
        "  fc_1.bias: expected F32 [4] (the closest name is 'fc1.bias')",
    ] == lines[:4]
    assert lines[4].startswith("  head.weight: expected F32 [2, 2]")
    assert [
        "unused, 2 tensors without a param:",
        "  fc1.bias: found F32 [4]",
        "  fc1.weight: found F32 [3, 4]",
        "mismatched, 4 tensors of another shape or kind:",
        *(
            f"  norm.{name}: expected float [5], found F32 [4]"
            for name in ("gamma", "beta", "running_mean", "running_var")
        ),
    ] == lines[5:-1]
    assert same(before, values(module))
    assert ids == [t.param_id for t in bt.into_record(module).tensors.values()]
    assert not module.fc_1.bias.requires_grad


def test_a_value_that_cannot_be_read_changes_nothing():
    """All values are read before the first parameter changes."""
    module = net()
    before, ids = values(module), [t.param_id for t in bt.into_record(module).tensors.values()]
    tensors = dict(bt.into_record(net()).tensors)

    def fail():
        raise OSError("the disk is gone")

    tensors["3.bias"] = Tensor.deferred("3.bias", "F32", (2,), fail)
    with pytest.raises(OSError, match="gone"):
        bt.load_record(module, ModuleRecord(tensors.values()))
    assert same(before, values(module))
    assert ids == [t.param_id for t in bt.into_record(module).tensors.values()]


def test_the_options_of_a_record():
    """Partial and unused are allowed when asked for; no validation skips other shapes (R24, R31)."""
    module = net()
    before = values(module)
    tensors = {
        "0.bias": Tensor.from_array("0.bias", np.ones(4, "f4")),
        "0.weight": Tensor.from_array("0.weight", np.zeros((9, 9), "f4")),
        "more": Tensor.from_array("more", np.zeros(1, "f4")),
    }
    report = bt.load_record(
        module,
        ModuleRecord(tensors.values()),
        allow_partial=True,
        allow_unused=True,
        validate=False,
    )
    assert (("0.bias",), ("more",), ("0.weight",)) == (
        report.loaded,
        report.unused,
        report.mismatched,
    )
    assert [1, 1, 1, 1] == module[0].bias.tolist()
    assert torch.equal(before["0.weight"], module[0].weight)


def test_dtype_policies():
    """From the record, a parameter takes its dtype and drops its gradient; or it is cast (R28)."""
    module, half = nn.Linear(2, 2), nn.Linear(2, 2).half()
    module.weight.grad = torch.zeros(2, 2)
    record = bt.into_record(half)
    bt.load_record(module, record, dtype_policy="module")
    assert (torch.float32, True) == (module.weight.dtype, module.weight.grad is not None)
    assert torch.equal(half.weight.float(), module.weight)
    bt.load_record(module, record)
    assert (torch.float16, None) == (module.weight.dtype, module.weight.grad)
    with pytest.raises(ValueError, match="policy"):
        bt.load_record(module, record, dtype_policy="none")


def test_casting_to_half_goes_by_way_of_binary32():
    """1 + 2^-11 + 2^-40 becomes 1 in F16, as in Burn, which rounds twice (R29)."""
    module = nn.Linear(1, 1, bias=False).half()
    wide = Tensor.from_array("weight", np.array([[1 + 2**-11 + 2**-40]]))
    bt.load_record(module, ModuleRecord([wide]), dtype_policy="module")
    assert 1.0 == module.weight.item()


def test_an_int_tensor_is_refused_for_a_float_parameter():
    """Where Burn panics there is an error (R28)."""
    with pytest.raises(RecordError, match="expected float"):
        bt.load_record(
            nn.Linear(1, 1, bias=False),
            ModuleRecord([Tensor.from_array("weight", np.ones((1, 1), "i4"))]),
        )


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(2, 2, bias=False)
        self.right = nn.Linear(2, 2, bias=False)
        self.right.weight = self.left.weight


def test_tied_parameters_are_copied_refused_or_stored_once():
    """``copy`` stores one id under both paths, as Burn does (R19)."""
    module = Tied()
    record = bt.into_record(module)
    assert ["left.weight", "right.weight"] == list(record.tensors)
    assert record["left.weight"].param_id == record["right.weight"].param_id
    assert ["left.weight"] == list(bt.into_record(module, tied="first").tensors)
    with pytest.raises(ValueError, match=r"right.weight and left.weight are one parameter"):
        bt.into_record(module, tied="error")
    with pytest.raises(ValueError, match="tied is one of"):
        bt.into_record(module, tied="none")


@pytest.mark.parametrize("tied", ["copy", "first"])
def test_tied_parameters_load_by_their_first_path(tied):
    """The first path decides, since it is the one that Burn trains; the other may be absent."""
    module, other = Tied(), Tied()
    record = bt.into_record(module, tied=tied)
    if tied == "copy":
        drifted = record["right.weight"].numpy() + 1
        tensors = {**record.tensors, "right.weight": Tensor.from_array("right.weight", drifted)}
        record = ModuleRecord(tensors.values())
    bt.load_record(other, record)
    assert torch.equal(module.left.weight, other.left.weight)
    assert other.left.weight is other.right.weight


def test_an_embedding_tied_to_a_linear_layer_lies_both_ways():
    """The same values in two layouts are two params with two ids: Burn keys state by id."""
    module = nn.ModuleDict({"emb": nn.Embedding(5, 3), "out": nn.Linear(3, 5, bias=False)})
    module["out"].weight = module["emb"].weight
    record = bt.into_record(module)
    assert ((5, 3), (3, 5)) == (record["emb.weight"].shape, record["out.weight"].shape)
    assert record["emb.weight"].numpy().T.tolist() == record["out.weight"].numpy().tolist()
    assert record["emb.weight"].param_id != record["out.weight"].param_id


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.LSTM(2, 2, num_layers=2), "one layer"),
        (nn.LSTM(2, 3, proj_size=1), "no projection"),
        (nn.MultiheadAttention(4, 2, kdim=3), "one size"),
        (nn.MultiheadAttention(4, 2, add_bias_kv=True), "add_bias_kv"),
        (nn.LayerNorm((2, 3)), "last dimension"),
        (nn.Bilinear(2, 2, 2), "no counterpart"),
        (nn.EmbeddingBag(3, 2), "no counterpart"),
        (nn.InstanceNorm1d(3, track_running_stats=True), "no such field"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)), "no counterpart"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_burn_lacks_is_stored_as_it_is_and_told(module, reason):
    """No layout is guessed: torch's names and values, and a warning with the reason."""
    with pytest.warns(bt.LayoutWarning, match=reason):
        record = bt.into_record(module)
    plain = bt.layout(module).plain
    assert plain
    for name in plain:
        tensor = module.state_dict()[name]
        assert tensor.tolist() == record[name].numpy().tolist()
    before = values(module)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    with pytest.warns(bt.LayoutWarning):
        bt.load_record(module, ModuleRecord.from_bytes(_saved(before, module)))
    assert same(before, values(module))


def _saved(before, module):
    """Return a record of what the module held before."""
    import copy

    old = copy.deepcopy(module)
    old.load_state_dict(before)
    with pytest.warns(bt.LayoutWarning):
        return bt.into_record(old).into_bytes()


def test_a_module_of_your_own_keeps_its_names():
    """A class that torch does not have is a struct: fields by name, layouts as they are, no warning."""

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2, 3))
            self.register_buffer("table", torch.ones(2))
            self.register_buffer("passing", torch.ones(2), persistent=False)

    class Wider(nn.Linear):
        pass

    module = nn.ModuleDict({"s": Scale(), "w": Wider(2, 3)})
    record = bt.into_record(module)
    assert ["s.scale", "s.table", "w.weight", "w.bias"] == list(record.tensors)
    assert ((2, 3), (2, 3)) == (record["s.scale"].shape, record["w.weight"].shape)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.LazyLinear(3), "run the module once"),
        (nn.Linear(2, 2, device="meta"), "to_empty"),
    ],
    ids=["lazy", "meta"],
)
@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature:UserWarning")
def test_parameters_without_data_are_refused_by_name(module, message):
    """The error names the parameter and says what to do."""
    with pytest.raises(ValueError, match=f"weight.*{message}"):
        bt.into_record(module)


def test_a_fused_weight_loads_in_part():
    """A gate that the record lacks keeps its rows, if partial loading is allowed."""
    module = nn.GRU(2, 3)
    before = module.weight_ih_l0.clone()
    tensor = Tensor.from_array("reset_gate.input_transform.weight", np.zeros((2, 3), "f4"))
    bt.load_record(module, ModuleRecord([tensor]), allow_partial=True)
    assert 0 == module.weight_ih_l0[:3].abs().sum().item()
    assert torch.equal(before[3:], module.weight_ih_l0[3:])


def test_the_parts_of_a_fused_weight_have_one_dtype():
    """Torch has them in one tensor; the error says how to load such a record."""
    module = nn.GRU(2, 3)
    before = values(module)
    record = bt.into_record(nn.GRU(2, 3))
    half = record["new_gate.input_transform.weight"].numpy().astype("f2")
    tensors = {**record.tensors}
    tensors["new_gate.input_transform.weight"] = Tensor.from_array(
        "new_gate.input_transform.weight", half
    )
    with pytest.raises(RecordError, match='dtype_policy="module"'):
        bt.load_record(module, ModuleRecord(tensors.values()))
    assert same(before, values(module))
    bt.load_record(module, ModuleRecord(tensors.values()), dtype_policy="module")
    assert half.T.tolist() == module.weight_ih_l0[6:].half().tolist()


def test_a_step_between_record_and_save_is_an_error():
    """A record is of one moment: what was written to meanwhile is not saved, and is named."""
    module = net()
    record = bt.into_record(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    with pytest.raises(ProviderError, match=r"'0.weight'.*copy=True"):
        record.into_bytes()


def test_a_copied_record_outlives_a_step():
    """With ``copy`` the record keeps the values of its moment."""
    module = net()
    record = bt.into_record(module, copy=True)
    expected = bt.into_record(module).into_bytes()
    with torch.no_grad():
        module[0].weight.add_(1)
    assert expected == record.into_bytes()


def test_loading_into_a_module_leaves_its_older_record_as_it_was():
    """Loading replaces the memory, so a record made before keeps the old values."""
    module = net()
    expected = bt.into_record(module).into_bytes()
    record = bt.into_record(module)
    bt.load_record(module, through_bytes(bt.into_record(net())))
    assert expected == record.into_bytes()
