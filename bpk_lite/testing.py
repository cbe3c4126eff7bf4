"""Hypothesis strategies for burnpack content, for our tests and for anyone who builds on us.

Needs hypothesis, which bpk_lite does not depend on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from bpk_lite.pack import DType, ParamId, QuantScheme, Scalar, Tensor

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["dtypes", "metadata", "names", "param_ids", "scalars", "schemes", "shapes", "tensors"]

_U64 = (1 << 64) - 1


def names() -> SearchStrategy[str]:
    """Any text that UTF-8 can hold, dotted paths and odd characters among it."""
    paths = st.lists(st.sampled_from(["fc", "0", "10", "weight", "r#type"]), min_size=1, max_size=4)
    return st.one_of(paths.map(".".join), st.text(max_size=12))


def shapes(*, max_dims: int = 4, max_side: int = 5) -> SearchStrategy[tuple[int, ...]]:
    """Shapes with few elements; rank 0 and dimensions of 0 among them."""
    return st.lists(st.integers(0, max_side), max_size=max_dims).map(tuple)


def param_ids() -> SearchStrategy[ParamId | None]:
    """None, or an id of any width."""
    return st.none() | st.integers(0, _U64).map(ParamId)


@st.composite
def schemes(draw: DrawFn) -> QuantScheme:
    """Quantization schemes of every value, store, mode and level."""
    store: Any = draw(st.sampled_from(["Native", "PackedNative", "PackedU32"]))
    scale = st.sampled_from(["F32", "F16", "BF16", "UE8M0", "UE4M3"])
    block = draw(st.none() | st.lists(st.integers(0, 255), max_size=5).map(tuple))
    return QuantScheme(
        draw(st.sampled_from(["Q8F", "E5M2", "E4M3", "Q4F", "E2M1", "Q2F", "Q8S", "Q4S", "Q2S"])),
        store,
        None if store == "Native" else draw(st.integers(0, 3)),
        draw(st.sampled_from(["Symmetric", "Lookup"])),
        draw(st.none() | scale),
        block,
        None if block is None else draw(scale),
    )


def dtypes(*, quantized: bool = True) -> SearchStrategy[DType]:
    """Every plain dtype and boolean store, and quantized ones if asked for."""
    plain = st.sampled_from([value for value in vars(DType).values() if isinstance(value, DType)])
    return plain | schemes().map(DType.quantized) if quantized else plain


@st.composite
def tensors(draw: DrawFn, name: SearchStrategy[str] | None = None) -> Tensor:
    """Tensors with random bytes of the right length; 0 and 1 for booleans."""
    dtype, shape = draw(dtypes()), draw(shapes())
    size = dtype.itemsize
    count = draw(st.integers(0, 40)) if size is None else math.prod(shape) * size
    data: Any = draw(st.binary(min_size=count, max_size=count))
    if dtype.kind == "bool":
        data = (np.frombuffer(data, np.uint8) & 1).view(np.uint8)
        data = (data[:: size or 1].astype(dtype.stored)).tobytes()
    return Tensor.from_bytes(
        draw(names() if name is None else name), dtype, shape, data, param_id=draw(param_ids())
    )


def scalars() -> SearchStrategy[Scalar]:
    """Scalars of every kind, NaN with payloads among the floats."""
    return st.one_of(
        st.integers(-(1 << 63), (1 << 63) - 1).map(lambda value: Scalar("Int", value)),
        st.integers(0, _U64).map(lambda value: Scalar("UInt", value)),
        st.floats(allow_nan=True).map(lambda value: Scalar("Float", value)),
        st.booleans().map(lambda value: Scalar("Bool", value)),
    )


def metadata() -> SearchStrategy[dict[str, str]]:
    """User metadata."""
    return st.dictionaries(names(), st.text(max_size=20), max_size=4)
