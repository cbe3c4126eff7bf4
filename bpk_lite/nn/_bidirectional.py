"""Recurrent layers that walk a sequence both ways.

The two directions are the fields ``forward`` and ``reverse`` in a file (R91). In Python the first
is called `ahead`, because `forward` is what a module computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bpk_lite.nn._gru import Gru
from bpk_lite.nn._lstm import Lstm, LstmState
from bpk_lite.nn._module import Module
from bpk_lite.nn._rnn import Rnn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

__all__ = ["BiGru", "BiLstm", "BiRnn"]

_NAMES: Mapping[str, str | None] = {"ahead": "forward"}


class BiLstm(Module):
    """Two `Lstm`, one for each direction; outputs are joined, states stacked (R125).

    Attributes:
        ahead: `Lstm` from the first step on, ``forward`` in a file.
        reverse: `Lstm` from the last step on.
        d_hidden: the number of hidden features of each.
    """

    field_names: ClassVar[Mapping[str, str | None]] = _NAMES

    def __init__(self, d_input: int, d_hidden: int, **options: Any) -> None:
        """Build both; `options` are those of `Lstm` without `reverse`."""
        self.ahead = Lstm(d_input, d_hidden, **options)
        self.reverse = Lstm(d_input, d_hidden, reverse=True, **options)
        self.d_hidden = d_hidden

    def forward(
        self, x: ArrayLike, state: tuple[ArrayLike, ArrayLike] | None = None
    ) -> tuple[NDArray[Any], LstmState]:
        """Map ``[batch, steps, d_input]`` to ``[batch, steps, 2 · d_hidden]`` and the last states.

        Args:
            x: the sequence.
            state: cell and hidden features to begin with, each ``[2, batch, d_hidden]``.
        """
        starts = (None, None) if state is None else tuple(zip(*map(np.asarray, state), strict=True))
        one, first = self.ahead(x, starts[0])
        other, second = self.reverse(x, starts[1])
        joined = (np.stack(pair) for pair in zip(first, second, strict=True))
        return np.concatenate([one, other], axis=-1), LstmState(*joined)


class BiGru(Module):
    """Two `Gru`, one for each direction; outputs are joined, states stacked (R125).

    Attributes:
        ahead: `Gru` from the first step on, ``forward`` in a file.
        reverse: `Gru` from the last step on.
        d_hidden: the number of hidden features of each.
        batch_first: whether the input is ``[batch, steps, d_input]``, or ``[steps, batch, …]``.
    """

    field_names: ClassVar[Mapping[str, str | None]] = _NAMES

    def __init__(
        self, d_input: int, d_hidden: int, *, batch_first: bool = True, **options: Any
    ) -> None:
        """Build both; `options` are those of `Gru`."""
        self.ahead = Gru(d_input, d_hidden, **options)
        self.reverse = Gru(d_input, d_hidden, **options)
        self.d_hidden = d_hidden
        self.batch_first = batch_first

    def forward(
        self, x: ArrayLike, hidden: ArrayLike | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Map ``[batch, steps, d_input]`` to ``[batch, steps, 2 · d_hidden]`` and the last states.

        Args:
            x: the sequence.
            hidden: the features to begin with, ``[2, batch, d_hidden]``.
        """
        inputs = np.asarray(x) if self.batch_first else np.asarray(x).transpose(1, 0, 2)
        start = (None, None) if hidden is None else np.asarray(hidden)
        one = self.ahead.run(inputs, start[0], reverse=False)
        other = self.reverse.run(inputs, start[1], reverse=True)
        last = np.stack([one[:, -1], other[:, 0]])
        out = np.concatenate([one, other], axis=-1)
        return (out if self.batch_first else out.transpose(1, 0, 2)), last


class BiRnn(Module):
    """Two `Rnn`, one for each direction; outputs are joined, states stacked (R125).

    Attributes:
        ahead: `Rnn` from the first step on, ``forward`` in a file.
        reverse: `Rnn` from the last step on.
        d_hidden: the number of hidden features of each.
    """

    field_names: ClassVar[Mapping[str, str | None]] = _NAMES

    def __init__(self, d_input: int, d_hidden: int, **options: Any) -> None:
        """Build both; `options` are those of `Rnn` without `reverse`."""
        self.ahead = Rnn(d_input, d_hidden, **options)
        self.reverse = Rnn(d_input, d_hidden, reverse=True, **options)
        self.d_hidden = d_hidden

    def forward(
        self, x: ArrayLike, hidden: ArrayLike | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Map ``[batch, steps, d_input]`` to ``[batch, steps, 2 · d_hidden]`` and the last states.

        Args:
            x: the sequence.
            hidden: the features to begin with, ``[2, batch, d_hidden]``.
        """
        start = (None, None) if hidden is None else np.asarray(hidden)
        one, first = self.ahead(x, start[0])
        other, second = self.reverse(x, start[1])
        return np.concatenate([one, other], axis=-1), np.stack([first, second])
