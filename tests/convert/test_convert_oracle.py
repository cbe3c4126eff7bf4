"""Real Burn reads what a conversion writes, in every format that it knows."""

from __future__ import annotations

import hashlib

import pytest

from bpk_lite.convert import convert, open_contents
from bpk_lite.pack import Scalar, Writer
from tests.convert.test_convert import TENSORS

pytestmark = [pytest.mark.desktop, pytest.mark.oracle]


@pytest.mark.parametrize(
    ("to", "extension"),
    [("burnpack", "bpk"), ("safetensors", "safetensors"), ("pytorch", "pt")],
)
def test_burn_lists_the_same_tensors(oracle, tmp_path, to, extension):
    """Names, shapes and bytes; scalars and metadata beside them do no harm."""
    blob = Writer(TENSORS, metadata={"k": "v"}, scalars={"step": Scalar("UInt", 3)}).plan()
    path = tmp_path / f"converted.{extension}"
    with open_contents(blob.into_bytes()) as source:
        convert(source, to).plan.write_to_file(path)
    theirs = oracle("oracle-store", to, path)["tensors"]
    assert {(t["name"], tuple(t["shape"]), t["sha256"]) for t in theirs} == {
        (name, array.shape, hashlib.sha256(array.tobytes()).hexdigest())
        for name, array in TENSORS.items()
    }
