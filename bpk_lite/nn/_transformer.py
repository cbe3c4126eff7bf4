"""The transformer's encoder and decoder (R123, R124)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from bpk_lite.nn._activation import Gelu
from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._attention import MultiHeadAttention
from bpk_lite.nn._enums import Activation
from bpk_lite.nn._linear import Linear
from bpk_lite.nn._module import Module
from bpk_lite.nn._norm import LayerNorm
from bpk_lite.nn.init import DEFAULT, Initializer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "PositionWiseFeedForward",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


class PositionWiseFeedForward(Module):
    """``outer(activation(inner(x)))``.

    The activation plays no role in a file: Burn 0.22 skips it, even where it has params (R92).
    Burn 0.23 stores it, last (R112), and so does a subclass with ``field_names = {}``.

    Attributes:
        linear_inner: `Linear`, ``d_model -> d_ff``.
        linear_outer: `Linear`, ``d_ff -> d_model``.
        activation: `Activation`, of `Gelu` by default.
    """

    field_names: ClassVar[Mapping[str, str | None]] = {"activation": None}

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Module | None = None,
        initializer: Initializer = DEFAULT,
    ) -> None:
        self.linear_inner = Linear(d_model, d_ff, initializer=initializer)
        self.linear_outer = Linear(d_ff, d_model, initializer=initializer)
        self.activation = Activation(activation or Gelu())

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[…, d_model]`` to the same shape."""
        out: NDArray[Any] = self.linear_outer(self.activation(self.linear_inner(x)))
        return out


class TransformerEncoderLayer(Module):
    """Self attention and feed-forward, each with a residual and a norm (R124).

    Attributes:
        mha: `MultiHeadAttention`.
        pwff: `PositionWiseFeedForward`.
        norm_1, norm_2: `LayerNorm`; by default after attention and after feed-forward, *norm
            first* the other way round: `norm_2` before attention, `norm_1` before feed-forward.
        norm_first: which of the two.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        n_heads: int,
        *,
        dropout: float = 0.1,
        norm_first: bool = False,
        quiet_softmax: bool = False,
        activation: Module | None = None,
        layer_norm_eps: float = 1e-5,
        initializer: Initializer = DEFAULT,
    ) -> None:
        self.mha = MultiHeadAttention(
            d_model, n_heads, dropout=dropout, quiet_softmax=quiet_softmax, initializer=initializer
        )
        self.pwff = PositionWiseFeedForward(
            d_model, d_ff, activation=activation, initializer=initializer
        )
        self.norm_1 = LayerNorm(d_model, epsilon=layer_norm_eps)
        self.norm_2 = LayerNorm(d_model, epsilon=layer_norm_eps)
        self.norm_first = norm_first

    def forward(
        self,
        x: ArrayLike,
        *,
        mask_pad: ArrayLike | None = None,
        mask_attn: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Map ``[batch, steps, d_model]`` to the same shape; masks as for the attention."""
        masks = {"mask_pad": mask_pad, "mask_attn": mask_attn}
        out = as_floats(x)
        if self.norm_first:
            out = out + self.mha(self.norm_2(out), **masks).context
            result: NDArray[Any] = out + self.pwff.forward(self.norm_1(out))
            return result
        out = self.norm_1(out + self.mha(out, **masks).context)
        return self.norm_2.forward(out + self.pwff(out))


class TransformerEncoder(Module):
    """Layers of self attention, one after the other (R124).

    Attributes:
        layers: `TransformerEncoderLayer`.
    """

    def __init__(
        self, d_model: int, d_ff: int, n_heads: int, n_layers: int, **options: Any
    ) -> None:
        """Build `n_layers` layers; `options` are theirs."""
        self.layers = [
            TransformerEncoderLayer(d_model, d_ff, n_heads, **options) for _ in range(n_layers)
        ]

    def forward(
        self,
        x: ArrayLike,
        *,
        mask_pad: ArrayLike | None = None,
        mask_attn: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Map ``[batch, steps, d_model]`` to the same shape.

        Args:
            x: the sequence.
            mask_pad: ``[batch, steps]``, true where a step is padding.
            mask_attn: ``[batch, steps, steps]``, true where a step may not look.
        """
        out = as_floats(x)
        for layer in self.layers:
            out = layer(out, mask_pad=mask_pad, mask_attn=mask_attn)
        return out


class TransformerDecoderLayer(Module):
    """Self attention, attention to a memory, and feed-forward, each with a residual and a norm.

    Attributes:
        cross_attn, self_attn: `MultiHeadAttention`.
        pwff: `PositionWiseFeedForward`.
        norm_1, norm_2, norm_3: `LayerNorm`; by default after self attention, cross attention and
            feed-forward, *norm first* `norm_3` before self attention, `norm_1` before cross
            attention and `norm_2` before feed-forward (R124).
        norm_first: which of the two.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        n_heads: int,
        *,
        dropout: float = 0.1,
        norm_first: bool = False,
        quiet_softmax: bool = False,
        activation: Module | None = None,
        layer_norm_eps: float = 1e-5,
        initializer: Initializer = DEFAULT,
    ) -> None:
        def attention() -> MultiHeadAttention:
            return MultiHeadAttention(
                d_model,
                n_heads,
                dropout=dropout,
                quiet_softmax=quiet_softmax,
                initializer=initializer,
            )

        self.cross_attn = attention()
        self.self_attn = attention()
        self.pwff = PositionWiseFeedForward(
            d_model, d_ff, activation=activation, initializer=initializer
        )
        self.norm_1 = LayerNorm(d_model, epsilon=layer_norm_eps)
        self.norm_2 = LayerNorm(d_model, epsilon=layer_norm_eps)
        self.norm_3 = LayerNorm(d_model, epsilon=layer_norm_eps)
        self.norm_first = norm_first

    def forward(
        self,
        target: ArrayLike,
        memory: ArrayLike,
        *,
        target_mask_pad: ArrayLike | None = None,
        target_mask_attn: ArrayLike | None = None,
        memory_mask_pad: ArrayLike | None = None,
        memory_mask_attn: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Map a target ``[batch, steps, d_model]`` to the same shape; see `TransformerDecoder`."""
        own = {"mask_pad": target_mask_pad, "mask_attn": target_mask_attn}
        other = {"mask_pad": memory_mask_pad, "mask_attn": memory_mask_attn}
        out = as_floats(target)
        if self.norm_first:
            out = out + self.self_attn(self.norm_3(out), **own).context
            out = out + self.cross_attn(self.norm_1(out), memory, **other).context
            result: NDArray[Any] = out + self.pwff.forward(self.norm_2(out))
            return result
        out = self.norm_1(out + self.self_attn(out, **own).context)
        out = self.norm_2(out + self.cross_attn(out, memory, **other).context)
        return self.norm_3.forward(out + self.pwff(out))


class TransformerDecoder(Module):
    """Layers that attend to themselves and to a memory, one after the other (R124).

    Attributes:
        layers: `TransformerDecoderLayer`.
    """

    def __init__(
        self, d_model: int, d_ff: int, n_heads: int, n_layers: int, **options: Any
    ) -> None:
        """Build `n_layers` layers; `options` are theirs."""
        self.layers = [
            TransformerDecoderLayer(d_model, d_ff, n_heads, **options) for _ in range(n_layers)
        ]

    def forward(self, target: ArrayLike, memory: ArrayLike, **masks: Any) -> NDArray[Any]:
        """Map a target ``[batch, steps, d_model]`` to the same shape.

        Args:
            target: the sequence.
            memory: ``[batch, keys, d_model]``, what the encoder gave; not normalized.
            masks: `target_mask_pad` ``[batch, steps]``, `target_mask_attn` ``[batch, steps,
                steps]``, `memory_mask_pad` ``[batch, keys]``, `memory_mask_attn` ``[batch, steps,
                keys]``; true where may not be looked.
        """
        out = as_floats(target)
        for layer in self.layers:
            out = layer(out, memory, **masks)
        return out
