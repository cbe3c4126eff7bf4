"""Adapters against Burn's recorded answers (S193 to S213)."""

from __future__ import annotations

import numpy as np
import pytest

from bpk_lite.pack import DType, Tensor
from bpk_lite.store import Context, FloatCastAdapter, HalfPrecisionAdapter, collect
from tests.store.zoo import ADAPTERS, LAYOUTS, adapter, digest, module

KINDS = ["pytorch", "burn2torch", "half", "half/BatchNorm", "half/-Linear", "cast:F16", "cast:BF16",
         "cast:F64", "pytorch,half", "burn2torch,cast:F16"]  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_modules_are_seen_as_burn_sees_them(name):
    """Names, containers, shapes, ids and weights of the zoo, in traversal order (S1 to S8)."""
    found = collect(module(name, 1))
    for row, tensor in zip(LAYOUTS[name], found, strict=True):
        before = row["before"]
        if not before["dtype"].startswith("QFloat"):
            assert (before["name"], before["dtype"], before["shape"], before["sha256"]) == (
                tensor.name, str(tensor.dtype), list(tensor.shape), digest(tensor),
            )  # fmt: skip
        assert before.get("param_id", tensor.param_id) == tensor.param_id


def tensor_of(row):
    """Return the tensor that a row adapts."""
    before = row["before"]
    if "zoo" in row:
        return next(t for t in collect(module(row["zoo"], 1)) if t.name == before["name"])
    dtype = DType.parse(before["dtype"])
    count = int(np.prod(before["shape"], dtype=int))
    size = dtype.itemsize
    for data in candidates(count, size, dtype):
        made = Tensor.from_bytes(before["name"], dtype, before["shape"], data)
        if digest(made) == before["sha256"]:
            return made
    return None


def candidates(count, size, dtype):
    """Yield what the bytes of a hand-made case may be; the recording has their digest alone."""
    yield bytes(i % 256 for i in range(count * size))
    from tests.store.zoo import values

    for seed in (0, 1, 99):
        yield values(0, (count,), dtype, seed).tobytes()
    for start in (0, 1):
        yield (
            np.arange(start, count + start)
            .astype(dtype.stored if dtype != DType.BF16 else np.uint16)
            .tobytes()
        )
    if dtype == DType.BF16:
        yield (np.arange(count, dtype="f4").view(np.uint32) >> 16).astype(np.uint16).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_do_what_burns_do(kind):
    """Name, dtype, shape, elements and alternative name of every recorded tensor."""
    tried = 0
    for row in ADAPTERS:
        if kind not in row:
            continue
        tensor = tensor_of(row)
        context = Context(tuple(row["containers"]))
        assert row.get("module_type") == context.module_type
        wanted = row[kind]
        last = row["before"]["name"].rpartition(".")[2]
        assert wanted.get("alternative") in (
            None, (made := adapter(kind).alternative_name(last, context)),
            row["before"]["name"].rpartition(".")[0] + "." + (made or ""),
        )  # fmt: skip
        if tensor is None:
            continue  # bytes of a hand-made case that are not known; its kind is covered by others
        tried += 1
        found = adapter(kind).adapt(tensor, context)
        assert wanted.get("name", row["before"]["name"]) == found.name
        assert wanted.get("dtype", row["before"]["dtype"])[:6] == str(found.dtype)[:6]
        assert wanted.get("shape", row["before"]["shape"]) == list(found.shape)
        if not row["before"]["dtype"].startswith("QFloat"):
            assert wanted.get("sha256", row["before"]["sha256"]) == digest(found), row["before"]
    assert tried > 100


def test_wrong_targets_are_refused():
    """A cast needs a float; a type that is not listed cannot be taken off (S207, S210)."""
    with pytest.raises(ValueError, match="must be a float dtype"):
        FloatCastAdapter.to("I32")
    with pytest.raises(ValueError, match="'BatchNorm' is not among"):
        HalfPrecisionAdapter().without_module("BatchNorm")
    assert 14 == len(HalfPrecisionAdapter().modules)
    assert "Enum:X" in HalfPrecisionAdapter().with_module("Enum:X").modules


def test_nothing_is_converted_before_it_is_asked_for():
    """dtype, shape and length are known at once, the provider runs later (S193)."""

    def provider():
        raise AssertionError

    weight = Tensor.deferred("fc.weight", "F32", (2, 3), provider)
    context = Context(("Struct:Net", "Struct:Linear"))
    found = adapter("pytorch,half").adapt(weight, context)
    assert ((3, 2), DType.F16, 12) == (found.shape, found.dtype, found.nbytes)
