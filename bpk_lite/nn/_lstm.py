"""The long short-term memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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

__all__ = ["Lstm", "LstmState"]


class LstmState(NamedTuple):
    """What an LSTM carries from step to step.

    Attributes:
        cell: ``[batch, d_hidden]``; a bidirectional one stacks both, ``[2, batch, d_hidden]``.
        hidden: the same shape.
    """

    cell: NDArray[Any]
    hidden: NDArray[Any]


class Lstm(Module):
    """Long short-term memory over a sequence (R125).

    Attributes:
        input_gate, output_gate, cell_gate: `GateController`.
        forget_gate: `GateController`, or None when it is coupled to the input gate.
        d_hidden: the number of hidden features.
        batch_first: whether the input is ``[batch, steps, d_input]``, or ``[steps, batch, …]``.
        reverse: whether it goes from the last step to the first.
        clip: what the cell is limited to, or None.
        gate_activation, cell_activation, hidden_activation: `Activation`.
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
        input_forget: bool = False,
        gate_activation: Module | None = None,
        cell_activation: Module | None = None,
        hidden_activation: Module | None = None,
        initializer: Initializer | None = None,
    ) -> None:
        drawn = XavierNormal(1.0) if initializer is None else initializer

        def gate() -> GateController:
            return GateController(d_input, d_hidden, bias=bias, initializer=drawn)

        self.input_gate = gate()
        self.forget_gate = None if input_forget else gate()
        self.output_gate = gate()
        self.cell_gate = gate()
        self.d_hidden = d_hidden
        self.batch_first = batch_first
        self.reverse = reverse
        self.clip = clip
        self.gate_activation = Activation(gate_activation or Sigmoid())
        self.cell_activation = Activation(cell_activation or Tanh())
        self.hidden_activation = Activation(hidden_activation or Tanh())

    def forward(
        self, x: ArrayLike, state: tuple[ArrayLike, ArrayLike] | None = None
    ) -> tuple[NDArray[Any], LstmState]:
        """Map ``[batch, steps, d_input]`` to ``[batch, steps, d_hidden]`` and the last state.

        Args:
            x: the sequence.
            state: cell and hidden features to begin with; zeros by default.

        Raises:
            ValueError: If the input has another rank or other features.
        """
        inputs = sequence(
            self, x, self.input_gate.input_transform.weight.shape[0], self.batch_first
        )
        gates = [self.input_gate, self.output_gate, self.cell_gate]
        if self.forget_gate is not None:
            gates.append(self.forget_gate)
        given, (weight, bias) = input_parts(inputs, gates), hidden_weights(gates)
        if bias is not None:
            given = given + bias
        batch, steps = inputs.shape[:2]
        start = np.zeros((batch, self.d_hidden), given.dtype)
        cell, hidden = (start, start) if state is None else map(np.asarray, state)
        out = np.empty((batch, steps, self.d_hidden), given.dtype)
        for step in order(steps, self.reverse):
            parts = np.split(given[:, step] + hidden @ weight, len(gates), axis=1)
            admit = self.gate_activation(parts[0])
            keep = self.gate_activation(parts[3]) if self.forget_gate is not None else 1 - admit
            cell = clipped(keep * cell + admit * self.cell_activation(parts[2]), self.clip)
            hidden = self.gate_activation(parts[1]) * self.hidden_activation(cell)
            out[:, step] = hidden
        last = LstmState(cell, hidden)
        return (out if self.batch_first else out.transpose(1, 0, 2)), last

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        d_input = self.input_gate.input_transform.weight.shape[0]
        return f"{d_input} -> {self.d_hidden}" + (", reverse" if self.reverse else "")
