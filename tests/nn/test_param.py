"""A param is declared at once and materialised when it is used."""

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.nn import init
from bpk_lite.pack import DType, ParamId, QuantScheme, Reader, Tensor, Writer


class Exploding(init.Initializer):
    """An initializer that must not be asked."""

    def fill(self, shape, fan_in, fan_out, random):
        raise AssertionError("initial values were drawn")


def never():
    """A provider that must not be called."""
    raise AssertionError("the tensor's bytes were read")


def test_declaring_draws_nothing():
    """A param knows shape, dtype and size without drawing its initial value."""
    param = nn.Param((2, 3), Exploding())
    assert ((2, 3), 6, DType.F32, "float") == (param.shape, param.size, param.dtype, param.kind)
    assert not param.materialised
    assert "F32 [2, 3]" in repr(param)


def test_value_is_drawn_once():
    """The initial value is drawn at the first use, and the same array is given afterwards."""
    param = nn.Param((4,), init.Normal())
    assert param.value is param.value
    assert np.dtype("float32") == param.value.dtype


def test_ids_are_random():
    """A param has a random 64-bit id unless one is given (R7)."""
    first, second = nn.Param((1,), init.Zeros()), nn.Param((1,), init.Zeros())
    assert first.id != second.id
    assert ParamId(42) == nn.Param((1,), init.Zeros(), param_id=42).id


def test_loading_draws_and_reads_nothing():
    """A loaded tensor replaces the value without drawing it and without reading the tensor."""
    param = nn.Param((2,), Exploding())
    param.load(Tensor.deferred("w", DType.F32, (2,), never, param_id=7))
    assert 7 == param.id
    assert not param.materialised


def test_loaded_value_is_a_view_of_the_pack():
    """The value of a loaded param shares memory with the pack and cannot be written to."""
    blob = Writer([Tensor.from_array("w", np.arange(6, dtype="<f4").reshape(2, 3))])
    blob = blob.plan().into_bytes()
    param = nn.Param((2, 3), Exploding())
    param.load(Reader.from_bytes(blob)["w"])
    assert np.shares_memory(param.value, np.frombuffer(blob, np.uint8))
    assert [3.0, 4.0, 5.0] == param.value[1].tolist()
    with pytest.raises(ValueError, match="read-only"):
        param.value[0, 0] = 1


def test_dtype_becomes_the_tensors():
    """A float param takes a float tensor verbatim and its dtype changes (R28)."""
    param = nn.Param((2,), init.Zeros())
    param.load(Tensor.from_array("w", np.array([1, 2], "<f8")))
    assert DType.F64 == param.dtype
    assert np.dtype("<f8") == param.value.dtype


def test_tensor_without_id_brings_a_random_one():
    """A tensor without an id installs a fresh random one (R34)."""
    param = nn.Param((1,), init.Zeros(), param_id=5)
    param.load(Tensor.from_array("w", np.zeros(1, "<f4")))
    assert ParamId(5) != param.id


def test_running_state_keeps_its_id():
    """A running state keeps the module's own id on loading (R34) and takes no gradient."""
    param = nn.Param((1,), init.Zeros(), running=True, param_id=5)
    param.load(Tensor.from_array("w", np.ones(1, "<f4"), param_id=6))
    assert 5 == param.id
    assert not param.require_grad


def test_frozen_param_stays_frozen():
    """Loading keeps the gradient requirement (R26)."""
    param = nn.Param((1,), init.Zeros(), require_grad=False)
    param.load(Tensor.from_array("w", np.ones(1, "<f4")))
    assert not param.require_grad


@pytest.mark.parametrize(
    ("declared", "array", "message"),
    [
        (
            DType.F32,
            np.zeros((3, 2), "<f4"),
            r"expected float \[2, 3\], found F32 \[3, 2\].*transp",
        ),
        (DType.F32, np.zeros((2, 3), "<i4"), r"expected float \[2, 3\], found I32 \[2, 3\]$"),
        (DType.I64, np.zeros((2, 3), "<f4"), r"expected int \[2, 3\], found F32"),
        (DType.I64, np.zeros((2, 3), bool), r"expected int \[2, 3\], found Bool"),
        (DType.BOOL, np.zeros((3, 3), "u1"), r"expected bool \[2, 3\], found U8"),
    ],
)
def test_wrong_shape_or_kind_is_refused(declared, array, message):
    """A tensor of another shape or kind is refused, with both described (R26; R28's int row)."""
    param = nn.Param((2, 3), init.Zeros(), dtype=declared, param_id=1)
    with pytest.raises(ValueError, match=message):
        param.load(Tensor.from_array("w", array))
    assert (declared, 1) == (param.dtype, param.id)


def test_assigned_array_must_fit():
    """Assigning a value of another shape or kind is refused."""
    param = nn.Param((2,), init.Zeros())
    with pytest.raises(ValueError, match=r"cannot hold F32 \[3\]"):
        param.value = np.zeros(3, "<f4")
    with pytest.raises(ValueError, match=r"cannot hold I32 \[2\]"):
        param.value = np.zeros(2, "<i4")


def test_assigned_array_is_held_and_saved_without_a_copy():
    """An assigned array is the value, and the tensor to save refers to it."""
    held = np.arange(3, dtype="<f4")
    param = nn.Param.of(held, param_id=9)
    assert held is param.value
    tensor = param.tensor("a.b")
    assert ("a.b", 9, DType.F32) == (tensor.name, tensor.param_id, tensor.dtype)
    assert np.shares_memory(held, tensor.numpy())


def test_unused_param_is_drawn_when_its_tensor_is_written():
    """The tensor of a param that was not used draws the value when asked for bytes."""
    param = nn.Param((2, 3), init.Normal())
    tensor = param.tensor("w")
    assert not param.materialised
    assert param.value.tobytes() == tensor.to_bytes()


def test_unread_param_is_saved_with_the_tensors_own_bytes():
    """A loaded param saves the tensor's bytes, whatever the dtype, under its own path and id."""
    bits = np.array([0x7FC1, 0x3F80], "<u2")  # a NaN with a payload, and 1
    param = nn.Param((2,), Exploding())
    param.load(Tensor.from_array("old", bits, dtype="BF16", param_id=3))
    assert (np.float32(1.0), np.dtype("f4")) == (param.operand()[1], param.operand().dtype)
    tensor = param.tensor("new")
    assert ("new", DType.BF16, 3) == (tensor.name, tensor.dtype, tensor.param_id)
    assert bits.tobytes() == tensor.to_bytes()


def test_quantized_param_computes_and_is_saved_as_it_was():
    """A float param takes a quantized tensor, computes with its values and saves its bytes (R28)."""
    dtype = DType.quantized(QuantScheme("Q8S", store="Native", tensor="F32"))
    data = np.array([1, -2], "i1").tobytes() + np.array([0.5], "<f4").tobytes()
    param = nn.Param((2,), init.Zeros())
    param.load(Tensor.from_bytes("w", dtype, (2,), data))
    assert ("float", [0.5, -1.0]) == (param.kind, param.value.tolist())
    tensor = param.tensor("w")
    assert (dtype, data) == (tensor.dtype, tensor.to_bytes())


def test_transposed_form_loads_and_saves_views():
    """A param in transposed form has its live shape, and loads and saves without a copy (R20)."""
    saved = np.arange(6, dtype="<f4").reshape(3, 2)
    param = nn.Param((2, 3), Exploding(), form=nn.TRANSPOSED)
    assert (3, 2) == param.saved_shape
    param.load(Tensor.from_array("w", saved))
    assert saved.T.tolist() == param.value.tolist()
    assert np.shares_memory(saved, param.value)
    assert saved.tobytes() == param.tensor("w").to_bytes()


def test_transposed_value_is_written_in_save_form():
    """A live value in transposed form is saved as its transpose, row by row (R20)."""
    live = np.arange(6, dtype="<f4").reshape(2, 3)
    param = nn.Param.of(live, form=nn.TRANSPOSED)
    tensor = param.tensor("w")
    assert (3, 2) == tensor.shape
    assert np.ascontiguousarray(live.T).tobytes() == tensor.to_bytes()


def test_seed_makes_values_independent_of_use():
    """The same seed gives the same values, whichever param is used first."""

    def build():
        nn.manual_seed(3)
        return nn.Param((2,), init.Normal()), nn.Param((2,), init.Normal())

    first, second = build()
    third, fourth = build()
    later = fourth.value
    assert first.value.tolist() == third.value.tolist()
    assert second.value.tolist() == later.tolist()
    assert first.value.tolist() != second.value.tolist()


def test_negative_seed_is_refused():
    """A seed is an integer from 0."""
    with pytest.raises(ValueError, match="not -1"):
        nn.manual_seed(-1)
