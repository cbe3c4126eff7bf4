"""Parameter ids (R7 to R10)."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite.pack import ParamId

TEXTS = {
    0: "0000000000000",
    1: "0400000000000",
    42: "5800000000000",
    123456: "83h0200000000",
    2**63: "0000000000080",
    2**64 - 1: "vvvvvvvvvvvvu",
    10777079075451239370: "pbtp1m2hs27pa",
}


@pytest.mark.parametrize(("number", "text"), TEXTS.items())
def test_ids_have_burns_text_form(number, text):
    """R9's table, both ways, in either case."""
    assert text == ParamId(number).text
    assert number == ParamId.parse(text) == ParamId.parse(text.upper())


@given(number=st.integers(0, 2**64 - 1))
def test_text_and_number_agree(number):
    """Every id survives its text form and pickling, and prints as its number."""
    made = ParamId(number)
    assert number == ParamId.parse(made.text) == pickle.loads(pickle.dumps(made))
    assert (str(number), f"ParamId({number})") == (str(made), repr(made))


@pytest.mark.parametrize(("text", "number"), [("08", 2), ("0400000000", 1), ("", 0)])
def test_short_texts_are_extended_with_zeros(text, number):
    """Old ids of 6 bytes, and shorter ones, are read (R10)."""
    assert number == ParamId.parse(text)


@pytest.mark.parametrize(
    "text", ["w", "0", "000", "0000000000001", "040000000000000", "é0", "0400-0000"]
)
def test_texts_that_are_no_ids_are_refused(text):
    """Foreign letters, impossible lengths, spare bits and more than 8 bytes (R10)."""
    with pytest.raises(ValueError, match="is not a parameter id"):
        ParamId.parse(text)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_ids_fit_in_64_bits(number):
    """Numbers outside u64 are refused."""
    with pytest.raises(ValueError, match=r"0 to 2\^64"):
        ParamId(number)


def test_random_ids_differ():
    """Two new ids are not the same (R7)."""
    assert ParamId.random() != ParamId.random()
