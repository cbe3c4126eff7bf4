"""The plain recurrent layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._activation import Tanh
from bpk_lite.nn._enums import Activation
from bpk_lite.nn._gate import GateController, clipped, order, sequence
from bpk_lite.nn._module import Module
from bpk_lite.nn.init import Initializer, XavierNormal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Rnn"]


class Rnn(Module):
    """``h = tanh(gate(x, h))`` over a sequence (R125).

    Attributes:
        gate: `GateController`.
        d_hidden: the number of hidden features.
        batch_first: whether the input is ``[batch, steps, d_input]``, or ``[steps, batch, …]``.
        reverse: whether it goes from the last step to the first.
        clip: what the hidden features are limited to after each step, or None.
        hidden_activation: `Activation`.
    """

    def __init__(
        self,
        d_input: int,
        d_hidden: int,
        *,
        bias: bool = True,
        batch_first: bool = True,
        reverse: bool = False,
        clip: float | None = None,
        hidden_activation: Module | None = None,
        initializer: Initializer | None = None,
    ) -> None:
        drawn = XavierNormal(1.0) if initializer is None else initializer
        self.gate = GateController(d_input, d_hidden, bias=bias, initializer=drawn)
        self.d_hidden = d_hidden
        self.batch_first = batch_first
        self.reverse = reverse
        self.clip = clip
        self.hidden_activation = Activation(hidden_activation or Tanh())

    def forward(
        self, x: ArrayLike, hidden: ArrayLike | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Map ``[batch, steps, d_input]`` to ``[batch, steps, d_hidden]`` and the last features.

        Args:
            x: the sequence.
            hidden: the features to begin with; zeros by default.

        Raises:
            ValueError: If the input has another rank or other features.
        """
        inputs = sequence(self, x, self.gate.input_transform.weight.shape[0], self.batch_first)
        given = self.gate.input_transform(inputs)
        batch, steps = inputs.shape[:2]
        start = np.zeros((batch, self.d_hidden), given.dtype) if hidden is None else hidden
        state: NDArray[Any] = np.asarray(start)
        out = np.empty((batch, steps, self.d_hidden), given.dtype)
        for step in order(steps, self.reverse):
            state = self.hidden_activation(given[:, step] + self.gate.hidden_transform(state))
            state = clipped(state, self.clip)
            out[:, step] = state
        return (out if self.batch_first else out.transpose(1, 0, 2)), state

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        d_input = self.gate.input_transform.weight.shape[0]
        return f"{d_input} -> {self.d_hidden}" + (", reverse" if self.reverse else "")
