"""The fast check of descriptors and the slow one that words complaints agree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bpk_lite.pack import BpkError, DType, Limits
from bpk_lite.pack._metadata import _check, check_descriptors

ODD = st.one_of(
    st.integers(-1, 20), st.sampled_from([2**64 - 1, 2**64, 2**63, 256]), st.none(), st.booleans(),
    st.floats(), st.text(max_size=2), st.binary(max_size=2),
)  # fmt: skip
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["F32", "U8", "Bool", "f32"]) | ODD | st.just({"Bool": "U8"}),
        "shape": st.lists(st.integers(0, 4) | ODD, max_size=3) | ODD,
        "data_offsets": st.lists(st.integers(0, 64) | ODD, min_size=1, max_size=3) | ODD,
        "param_id": ODD,
        "more": ODD,
    },
)


@st.composite
def right(draw):
    """A descriptor that is right, before `FIELDS` may spoil it."""
    dtype = draw(st.sampled_from(["F32", "U8", "F64"]))
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    size = DType.parse(dtype).itemsize
    for dim in shape:
        size *= dim
    start = draw(st.integers(0, 600))
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, start + size]}


@given(good=right(), spoil=FIELDS | st.just({}))
def test_fast_and_slow_checks_agree(good, spoil):
    """Both accept or both raise the same error, for right and for spoilt descriptors."""
    fields = {**good, **spoil}
    limits = Limits()

    def outcome(check):
        try:
            return check()
        except BpkError as error:
            return str(error)

    slow = outcome(lambda: _check("t", fields, 2**64 - 1 - 256, limits.tensor_bytes))
    assert slow == outcome(lambda: check_descriptors({"t": fields}, 256, limits))
