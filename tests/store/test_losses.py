"""A cast says what it lost: new infinities and zeros (bug F4)."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.convert import Contents, convert
from bpk_lite.pack import Tensor
from bpk_lite.store import (
    BurnpackStore,
    CastLosses,
    FloatCastAdapter,
    HalfPrecisionAdapter,
    cast_losses,
)

VALUES = np.array([1e6, -1e6, 1e-10, 1.0, np.inf, np.nan, 0.0, 65504.0], "<f4")


@pytest.mark.parametrize(
    ("dtype", "losses"),
    [("F16", CastLosses(2, 1)), ("BF16", CastLosses()), ("F64", CastLosses())],
)
def test_what_became_infinite_or_zero_is_counted(dtype, losses, caplog):
    """Infinities, NaN and zeros that were there do not count; nothing lost is nothing said."""
    before = Tensor.from_array("w", VALUES)
    context = None
    after = FloatCastAdapter.to(dtype).adapt(before, context)
    assert caplog.records == []
    assert losses == cast_losses(before, after)
    assert bool(caplog.records) == (losses != CastLosses())
    if caplog.records:
        assert "w, from F32 to F16: 2 values became infinite, 1 became 0" in caplog.text


def test_the_smallest_and_largest_numbers():
    """F64 to F32 and F32 to BF16 have ends too."""
    wide = Tensor.from_array("w", np.array([1e300, 1e-300, 1.0]))
    assert CastLosses(1, 1) == cast_losses(wide, FloatCastAdapter.to("F32").adapt(wide, None))
    wide = Tensor.from_array("w", np.array([3.4e38, 1e-45, 1.0], "<f4"))
    assert CastLosses(1, 1) == cast_losses(wide, FloatCastAdapter.to("BF16").adapt(wide, None))


def test_long_tensors_are_counted_in_parts():
    """Beyond one part as within it."""
    wide = Tensor.from_array("w", np.full(3_000_001, 1e6, "<f4"))
    assert CastLosses(3_000_001, 0) == cast_losses(
        wide, FloatCastAdapter.to("F16").adapt(wide, None)
    )


def test_stores_and_conversions_say_so(caplog):
    """Each tensor once, when it is written."""
    caplog.set_level(logging.WARNING, "bpk_lite")
    net = nn.Linear(2, 2)
    net.weight.value = np.full((2, 2), 1e6, "f4")
    BurnpackStore(to_adapter=HalfPrecisionAdapter()).collect_from(net)
    assert ["weight, from F32 to F16: 4 values became infinite, 0 became 0"] == caplog.messages
    caplog.clear()
    source = Contents("burnpack", [Tensor.from_array("a", VALUES)])
    convert(source, dtype="F16").plan.into_bytes()
    assert ["a, from F32 to F16: 2 values became infinite, 1 became 0"] == caplog.messages


def test_what_is_cast_is_made_once():
    """A provider is called once in a save, also where its values are counted (C89)."""
    calls = []

    def provider():
        calls.append(1)
        return VALUES

    source = Contents("burnpack", [Tensor.deferred("a", "F32", VALUES.shape, provider)])
    convert(source, dtype="F16").plan.into_bytes()
    assert [1] == calls


def test_other_things_cannot_be_compared():
    """Integers, and other shapes."""
    one, two = Tensor.from_array("a", VALUES), Tensor.from_array("b", VALUES[:2])
    with pytest.raises(ValueError, match="no two floats"):
        cast_losses(one, two)
    with pytest.raises(ValueError, match="no two floats"):
        cast_losses(one, Tensor.from_array("c", np.zeros(8, "i4")))
