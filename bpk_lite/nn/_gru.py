"""The gated recurrent unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._activation import Sigmoid, Tanh
from bpk_lite.nn._enums import Activation
from bpk_lite.nn._gate import (
    GateController,
    clipped,
    hidden_weights,
    input_parts,
    order,
    sequence,
)
from bpk_lite.nn._module import Module
from bpk_lite.nn.init import Initializer, XavierNormal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Gru"]


class Gru(Module):
    """Gated recurrent unit over a sequence (R125).

    Attributes:
        update_gate, reset_gate, new_gate: `GateController`.
        d_hidden: the number of hidden features.
        reset_after: whether the reset gate acts after the product with the hidden weight, as in
            PyTorch, or before it.
        clip: what the hidden features are limited to after each step, or None.
        gate_activation, hidden_activation: `Activation`.
    """

    def __init__(
        self,
        d_input: int,
        d_hidden: int,
        *,
        bias: bool = True,
        reset_after: bool = True,
        clip: float | None = None,
        gate_activation: Module | None = None,
        hidden_activation: Module | None = None,
        initializer: Initializer | None = None,
    ) -> None:
        drawn = XavierNormal(1.0) if initializer is None else initializer

        def gate() -> GateController:
            return GateController(d_input, d_hidden, bias=bias, initializer=drawn)

        self.update_gate = gate()
        self.reset_gate = gate()
        self.new_gate = gate()
        self.d_hidden = d_hidden
        self.reset_after = reset_after
        self.clip = clip
        self.gate_activation = Activation(gate_activation or Sigmoid())
        self.hidden_activation = Activation(hidden_activation or Tanh())

    def forward(self, x: ArrayLike, hidden: ArrayLike | None = None) -> NDArray[Any]:
        """Map ``[batch, steps, d_input]`` to ``[batch, steps, d_hidden]``, the state of each step.

        Args:
            x: the sequence.
            hidden: the features to begin with; zeros by default.

        Raises:
            ValueError: If the input has another rank or other features.
        """
        return self.run(x, hidden, reverse=False)

    def run(self, x: ArrayLike, hidden: ArrayLike | None, *, reverse: bool) -> NDArray[Any]:
        """Compute `forward`, from the last step to the first when `reverse`."""
        inputs = sequence(self, x, self.new_gate.input_transform.weight.shape[0], batch_first=True)
        gates = [self.update_gate, self.reset_gate]
        given, (weight, bias) = input_parts(inputs, gates), hidden_weights(gates)
        if bias is not None:
            given = given + bias
        fresh = self.new_gate.input_transform(inputs)
        batch, steps = inputs.shape[:2]
        state = np.zeros((batch, self.d_hidden), given.dtype) if hidden is None else hidden
        state = np.asarray(state)
        out = np.empty((batch, steps, self.d_hidden), given.dtype)
        for step in order(steps, reverse):
            gate = self.gate_activation(given[:, step] + state @ weight)
            update, reset = gate[:, : self.d_hidden], gate[:, self.d_hidden :]
            if self.reset_after:
                recalled = reset * self.new_gate.hidden_transform(state)
            else:
                recalled = self.new_gate.hidden_transform(reset * state)
            new = self.hidden_activation(fresh[:, step] + recalled)
            state = clipped(new * (1 - update) + update * state, self.clip)
            out[:, step] = state
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"{self.new_gate.input_transform.weight.shape[0]} -> {self.d_hidden}"
