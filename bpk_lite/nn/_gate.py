"""The gate that every recurrent layer is made of, and how such a layer walks over its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._linear import Linear
from bpk_lite.nn._module import Module

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from bpk_lite.nn.init import Initializer

__all__ = ["GateController", "clipped", "hidden_weights", "input_parts", "order", "sequence"]


class GateController(Module):
    """``x · W_in + b_in + h · W_hid + b_hid`` (R125).

    Attributes:
        input_transform: `Linear` from the input's features to the hidden ones.
        hidden_transform: `Linear` from the hidden features to themselves.
    """

    def __init__(
        self, d_input: int, d_output: int, *, bias: bool = True, initializer: Initializer
    ) -> None:
        self.input_transform = Linear(d_input, d_output, bias=bias, initializer=initializer)
        self.hidden_transform = Linear(d_output, d_output, bias=bias, initializer=initializer)

    def forward(self, x: ArrayLike, hidden: ArrayLike) -> NDArray[Any]:
        """Map ``[…, d_input]`` and ``[…, d_output]`` to ``[…, d_output]``."""
        out: NDArray[Any] = self.input_transform(x) + self.hidden_transform(hidden)
        return out


def sequence(layer: Module, x: ArrayLike, d_input: int, batch_first: bool) -> NDArray[Any]:
    """Return the input as ``[batch, steps, d_input]``.

    Raises:
        ValueError: If it has another rank or other features.
    """
    inputs = as_floats(x)
    if inputs.ndim != 3 or inputs.shape[2] != d_input:
        places = "batch, steps" if batch_first else "steps, batch"
        raise ValueError(
            f"{type(layer).__name__} expects [{places}, {d_input}], "
            f"the input is {list(inputs.shape)}"
        )
    return inputs if batch_first else inputs.transpose(1, 0, 2)


def order(steps: int, reverse: bool) -> Iterable[int]:
    """Return the steps in the order in which they are computed."""
    return reversed(range(steps)) if reverse else range(steps)


def input_parts(inputs: NDArray[Any], gates: Sequence[GateController]) -> NDArray[Any]:
    """Return ``x · W_in + b_in`` of all gates at all steps, side by side."""
    return np.concatenate([gate.input_transform(inputs) for gate in gates], axis=-1)


def hidden_weights(gates: Sequence[GateController]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the ``W_hid`` of all gates side by side, and their ``b_hid`` or None."""
    weight = np.concatenate([gate.hidden_transform.weight.operand() for gate in gates], axis=1)
    biases = [gate.hidden_transform.bias for gate in gates]
    held = [bias.operand() for bias in biases if bias is not None]
    return weight, np.concatenate(held) if held else None


def clipped(values: NDArray[Any], clip: float | None) -> NDArray[Any]:
    """Return `values` limited to ±`clip`."""
    return values if clip is None else np.clip(values, -clip, clip)
