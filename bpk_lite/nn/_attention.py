"""Attention with several heads: over one sequence, or from one to another (R123)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bpk_lite.nn._linear import Linear
from bpk_lite.nn._module import Module
from bpk_lite.nn.functional import quiet_softmax, softmax
from bpk_lite.nn.init import DEFAULT, Initializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["CrossAttention", "MhaOutput", "MultiHeadAttention"]

MIN_FLOAT = -1.0e4  # Burn's score where a mask is true, not -inf


class MhaOutput(NamedTuple):
    """What `MultiHeadAttention` computes.

    Attributes:
        context: ``[batch, queries, d_model]``.
        weights: ``[batch, heads, queries, keys]``.
    """

    context: NDArray[Any]
    weights: NDArray[Any]


class MultiHeadAttention(Module):
    """Attention of queries to keys, in heads of ``d_model / n_heads`` (R123).

    Attributes:
        query, key, value, output: `Linear`, ``d_model -> d_model``.
        d_model: features of the input and the output.
        n_heads: number of heads.
        dropout: the probability with which training would zero a weight.
        quiet_softmax: whether all weights of a query may be near 0.
        min_float: the score where a mask is true.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        dropout: float = 0.1,
        quiet_softmax: bool = False,
        min_float: float = MIN_FLOAT,
        query_bias: bool = True,
        key_bias: bool = True,
        value_bias: bool = True,
        output_bias: bool = True,
        initializer: Initializer = DEFAULT,
    ) -> None:
        if n_heads < 1 or d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")

        def linear(bias: bool) -> Linear:
            return Linear(d_model, d_model, bias=bias, initializer=initializer)

        self.query = linear(query_bias)
        self.key = linear(key_bias)
        self.value = linear(value_bias)
        self.output = linear(output_bias)
        self.d_model = d_model
        self.n_heads = n_heads
        self.dropout = dropout
        self.quiet_softmax = quiet_softmax
        self.min_float = min_float

    def forward(
        self,
        query: ArrayLike,
        key: ArrayLike | None = None,
        value: ArrayLike | None = None,
        *,
        mask_pad: ArrayLike | None = None,
        mask_attn: ArrayLike | None = None,
    ) -> MhaOutput:
        """Attend from each query to every key whose masks are false.

        Args:
            query: ``[batch, queries, d_model]``.
            key: ``[batch, keys, d_model]``; the query itself by default.
            value: ``[batch, keys, d_model]``; the key by default.
            mask_pad: ``[batch, keys]``, true where a key is padding.
            mask_attn: ``[batch, queries, keys]``, true where a query may not look.
        """
        keys = query if key is None else key
        values = keys if value is None else value
        context, weights = attend(
            split_heads(self.query(query), self.n_heads),
            split_heads(self.key(keys), self.n_heads),
            split_heads(self.value(values), self.n_heads),
            mask_pad,
            mask_attn,
            quiet=self.quiet_softmax,
            min_float=self.min_float,
        )
        return MhaOutput(self.output(join_heads(context)), weights)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"{self.d_model}, {self.n_heads} heads"


class CrossAttention(Module):
    """Attention of queries to a context, whose heads several query heads may share (R123).

    Attributes:
        query: `Linear`, ``d_model -> n_heads · d_head``.
        key, value: `Linear`, ``d_context -> n_heads_kv · d_head``.
        output: `Linear`, ``n_heads · d_head -> d_model``.
        n_heads: number of query heads.
        n_heads_kv: number of key and value heads; divides `n_heads`.
        d_head: features of a head.
        dropout: the probability with which training would zero a weight.
        quiet_softmax: whether all weights of a query may be near 0.
        min_float: the score where a mask is true.
    """

    def __init__(
        self,
        d_model: int,
        d_context: int,
        n_heads: int,
        n_heads_kv: int,
        d_head: int,
        *,
        dropout: float = 0.1,
        quiet_softmax: bool = False,
        min_float: float = MIN_FLOAT,
        initializer: Initializer = DEFAULT,
    ) -> None:
        if n_heads_kv < 1 or n_heads < 1 or n_heads % n_heads_kv:
            raise ValueError(f"{n_heads_kv} key heads do not divide {n_heads} query heads")
        self.query = Linear(d_model, n_heads * d_head, initializer=initializer)
        self.key = Linear(d_context, n_heads_kv * d_head, initializer=initializer)
        self.value = Linear(d_context, n_heads_kv * d_head, initializer=initializer)
        self.output = Linear(n_heads * d_head, d_model, initializer=initializer)
        self.n_heads = n_heads
        self.n_heads_kv = n_heads_kv
        self.d_head = d_head
        self.dropout = dropout
        self.quiet_softmax = quiet_softmax
        self.min_float = min_float

    def forward(
        self, query: ArrayLike, context: ArrayLike, *, mask_pad: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Map ``[batch, queries, d_model]`` and ``[batch, keys, d_context]`` to the query's shape.

        Args:
            query: who looks.
            context: what is looked at.
            mask_pad: ``[batch, keys]``, true where a key is padding.
        """
        queries = split_heads(self.query(query), self.n_heads)
        shared = self.n_heads // self.n_heads_kv
        keys, values = (
            split_heads(layer(context), self.n_heads_kv).repeat(shared, axis=1)
            for layer in (self.key, self.value)
        )
        found, _ = attend(
            queries, keys, values, mask_pad, None,
            quiet=self.quiet_softmax, min_float=self.min_float,
        )  # fmt: skip
        out: NDArray[Any] = self.output(join_heads(found))
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"{self.n_heads} query heads, {self.n_heads_kv} key heads of {self.d_head}"


def split_heads(x: NDArray[Any], heads: int) -> NDArray[Any]:
    """View ``[batch, steps, heads · d]`` as ``[batch, heads, steps, d]``."""
    batch, steps, features = x.shape
    return x.reshape(batch, steps, heads, features // heads).transpose(0, 2, 1, 3)


def join_heads(x: NDArray[Any]) -> NDArray[Any]:
    """Return ``[batch, heads, steps, d]`` as ``[batch, steps, heads · d]``."""
    batch, heads, steps, features = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, steps, heads * features)


def attend(
    query: NDArray[Any],
    key: NDArray[Any],
    value: NDArray[Any],
    mask_pad: ArrayLike | None,
    mask_attn: ArrayLike | None,
    *,
    quiet: bool,
    min_float: float,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what each query finds, and its weights; all ``[batch, heads, steps, d]`` (R123).

    Raises:
        ValueError: If a mask is not boolean or of another shape.
    """
    scores = query @ key.transpose(0, 1, 3, 2)
    scores /= scores.dtype.type(math.sqrt(query.shape[-1]))
    batch, _, queries, keys = scores.shape
    if mask_pad is not None:
        hidden = _mask("mask_pad", mask_pad, (batch, keys))[:, None, None, :]
        np.copyto(scores, scores.dtype.type(min_float), where=hidden)
    if mask_attn is not None:
        hidden = _mask("mask_attn", mask_attn, (batch, queries, keys))[:, None]
        np.copyto(scores, scores.dtype.type(min_float), where=hidden)
    weights = quiet_softmax(scores) if quiet else softmax(scores)
    return weights @ value, weights


def _mask(name: str, mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    found = np.asarray(mask)
    if found.dtype.kind != "b" or found.shape != shape:
        raise ValueError(f"{name} is boolean {list(shape)}, not {found.dtype} {list(found.shape)}")
    return found
