"""Typed scalars (C32, C33, C120 to C122; burn-pack's base.rs)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given

from bpk_lite import testing as bt
from bpk_lite.pack import Reader, Scalar, Writer


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, "UInt"), (-3, "Int"), (2**64 - 1, "UInt"), (True, "Bool"), (0.5, "Float"),
        (np.int8(3), "Int"), (np.uint16(3), "UInt"), (np.float32(0.1), "Float"), (np.bool_(0), "Bool"),
    ],
)  # fmt: skip
def test_values_become_the_kind_of_their_type(value, kind):
    """Numpy's signedness decides (C120); a Python int is unsigned unless negative."""
    made = Scalar.of(value)
    assert (kind, value) == (made.kind, made.value)


def test_binary32_is_widened_exactly():
    """A float32 becomes the double of the same value, not of the same decimal (C120)."""
    assert 0.10000000149011612 == Scalar.of(np.float32(0.1)).value


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_integers_beyond_64_bits_are_refused(value):
    """There is no conversion from 128-bit integers (C120)."""
    with pytest.raises(ValueError, match="does not fit"):
        Scalar.of(value)


@pytest.mark.parametrize("value", ["3", b"3", None, 1j, [1]])
def test_other_values_are_refused(value):
    """Text goes into metadata; the message says so."""
    with pytest.raises(TypeError, match="int, float or bool"):
        Scalar.of(value)


def test_integers_convert_across_kinds_when_they_fit():
    """UInt(5) is readable as signed, Int(5) as unsigned (C122)."""
    assert (5, 5) == (Scalar("UInt", 5).as_int(), Scalar("Int", 5).as_int(signed=False))
    assert 127 == Scalar("UInt", 127).as_int(8)


@pytest.mark.parametrize(
    ("scalar", "bits", "signed"),
    [
        (Scalar("UInt", 128), 8, True), (Scalar("Int", -1), 64, False), (Scalar("UInt", 2**63), 64, True),
        (Scalar("UInt", 256), 8, False), (Scalar("Float", 1.0), 64, True), (Scalar("Bool", True), 8, True),
    ],
)  # fmt: skip
def test_integers_that_do_not_fit_are_refused(scalar, bits, signed):
    """Out of range, negative to unsigned, and floats even when integral (C121, C122)."""
    with pytest.raises(ValueError, match="is no"):
        scalar.as_int(bits, signed=signed)


def test_every_number_is_readable_as_a_float():
    """Int, UInt and Float convert to both widths; binary32 rounds once and may overflow (C121)."""
    assert (3.0, 3.0) == (Scalar("Int", 3).as_float(), Scalar("UInt", 3).as_float(32))
    assert np.inf == Scalar("Float", 1e300).as_float(32)
    assert 2.0**53 == Scalar("UInt", 2**53 + 1).as_float()
    odd = 2**24 + 1 + 2**60  # rounding to double first would give another binary32
    assert float(np.uint64(odd).astype(np.float32)) == Scalar("UInt", odd).as_float(32)
    with pytest.raises(ValueError, match="is no number"):
        Scalar("Bool", True).as_float()


def test_only_booleans_are_booleans():
    """A number is never a boolean (C121)."""
    assert Scalar("Bool", True).as_bool() is True
    with pytest.raises(ValueError, match="is no boolean"):
        Scalar("UInt", 1).as_bool()


def test_kinds_with_equal_numbers_differ_and_floats_compare_by_bits():
    """Int(3) is not UInt(3) (C33); NaN equals itself; the zeros differ."""
    assert Scalar("Int", 3) != Scalar("UInt", 3)
    assert Scalar("Float", float("nan")) == Scalar("Float", float("nan"))
    assert Scalar("Float", 0.0) != Scalar("Float", -0.0)
    assert Scalar("Int", 3) != 3


@given(scalar=bt.scalars())
def test_scalars_keep_kind_and_bits_in_a_pack(scalar):
    """Every scalar survives a pack and pickling."""
    blob = Writer({}, scalars={"x": scalar}).plan().into_bytes()
    assert scalar == Reader.from_bytes(blob).scalars["x"] == pickle.loads(pickle.dumps(scalar))


def test_a_pack_without_scalars_has_an_empty_map():
    """Nothing is added on its own (C88)."""
    pack = Reader.from_bytes(Writer({"w": np.ones(1)}).plan().into_bytes())
    assert ({}, {}) == (dict(pack.scalars), dict(pack.metadata))


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [("Int", 1.0, TypeError), ("Float", 1, TypeError), ("Bool", 1, TypeError), ("UInt", True, TypeError),
     ("Int", 2**63, ValueError), ("UInt", -1, ValueError), ("Text", "a", ValueError)],
)  # fmt: skip
def test_scalars_hold_what_their_kind_says(kind, value, error):
    """A value of another type or range is refused when the scalar is made."""
    with pytest.raises(error):
        Scalar(kind, value)
