"""The form in which a param is saved, where it differs from the one it computes with (R20).

A form is two inverse views and the shape they lead to. Views, not copies: loading a transposed
weight costs nothing, and the writer makes bytes contiguous when it reaches them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["IDENTITY", "TRANSPOSED", "SaveForm"]


@dataclass(frozen=True, slots=True)
class SaveForm:
    """A pair of mappers between the live value and the saved one (R20).

    Attributes:
        name: what `repr` and error messages call it.
        save: live value to saved value; a view wherever one is possible.
        load: saved value to live value, the inverse of `save`.
        shape: live shape to saved shape.
    """

    name: str
    save: Callable[[NDArray[Any]], NDArray[Any]]
    load: Callable[[NDArray[Any]], NDArray[Any]]
    shape: Callable[[tuple[int, ...]], tuple[int, ...]]


def _same(array: NDArray[Any]) -> NDArray[Any]:
    return array


def _transpose(array: NDArray[Any]) -> NDArray[Any]:
    return array.T


# Named functions, not lambdas: modules pickle.
def _same_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape


def _reversed_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[::-1]


IDENTITY = SaveForm("as it is", _same, _same, _same_shape)
TRANSPOSED = SaveForm("transposed", _transpose, _transpose, _reversed_shape)
