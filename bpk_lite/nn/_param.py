"""One parameter: declared at once, materialised when it is used.

A param is in one of three states. *Declared*: a shape, a dtype and an initializer. *Loaded*: a
tensor of a pack, whose bytes nobody has asked for yet. *Held*: a numpy array. Building a model and
loading a pack into it goes through the first two only; initial values that a pack replaces are
never drawn, and bytes that no layer uses are never read. A loaded param that is saved again gives
the tensor's own bytes, whatever its dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bpk_lite.nn._form import IDENTITY, SaveForm
from bpk_lite.nn._random import generator, next_stream
from bpk_lite.pack import DependencyError, DType, ParamId, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from bpk_lite.nn.init import Initializer

__all__ = ["Kind", "Param", "kind_of"]

Kind = Literal["float", "int", "bool"]


def kind_of(dtype: DType) -> Kind:
    """Return the kind of param that holds `dtype`; a float param may be quantized (R28)."""
    return "float" if dtype.kind == "quantized" else dtype.kind


class Param:
    """A tensor with an id that a module owns (R7, R16).

    Attributes:
        shape: the shape it computes with; never changes.
        kind: ``"float"``, ``"int"`` or ``"bool"``; never changes, while the dtype may (R28).
        id: the id that optimizer records know it by; taken over from a loaded tensor (R34).
        require_grad: whether training changes it; stays as it is on loading (R26).
        running: a running state, such as a batch norm's mean: keeps its own id on loading (R34).
        form: how the saved value differs from the live one (R20).
    """

    __slots__ = (
        "_array", "_dtype", "_fans", "_init", "_stream", "_tensor",
        "form", "id", "kind", "require_grad", "running", "shape",
    )  # fmt: skip

    def __init__(
        self,
        shape: Sequence[int],
        init: Initializer,
        *,
        dtype: DType = DType.F32,
        fans: tuple[int, int] = (1, 1),
        form: SaveForm = IDENTITY,
        running: bool = False,
        require_grad: bool = True,
        param_id: int | None = None,
    ) -> None:
        """Declare a param; nothing of its size is allocated.

        Args:
            shape: the live shape.
            init: what it holds until something is loaded.
            dtype: the element type of the initial value.
            fans: how many inputs and outputs meet in an element, for `init`.
            form: how it is saved.
            running: whether it is a running state; those take no gradient.
            require_grad: whether training may change it.
            param_id: its id; random by default (R7).
        """
        self.shape = tuple(int(size) for size in shape)
        self.kind: Kind = kind_of(dtype)
        self.id = ParamId.random() if param_id is None else ParamId(param_id)
        self.require_grad = require_grad and not running
        self.running = running
        self.form = form
        self._dtype = dtype
        self._init: Initializer | None = init
        self._fans = fans
        self._stream = next_stream()
        self._tensor: Tensor | None = None
        self._array: NDArray[Any] | None = None

    @classmethod
    def of(cls, array: ArrayLike, **options: Any) -> Param:
        """Return a param that holds `array`, without a copy; `options` as for the constructor."""
        from bpk_lite.nn.init import Zeros

        held = np.asarray(array)
        param = cls(held.shape, Zeros(), dtype=DType.of(held), **options)
        param.value = held
        return param

    @property
    def dtype(self) -> DType:
        """The element type now: of the loaded tensor, of the array, or as declared (R12)."""
        return self._dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def saved_shape(self) -> tuple[int, ...]:
        """The shape in a file (R20)."""
        return self.form.shape(self.shape)

    @property
    def materialised(self) -> bool:
        """Whether the value has been drawn or read."""
        return self._array is not None

    @property
    def value(self) -> NDArray[Any]:
        """The live array, made on first use.

        From a loaded tensor it is a read-only view of the pack; quantized data comes as float32.
        An assigned array is held without a copy and must have the param's shape and kind.
        """
        if self._array is None:
            self._array = self._make()
        return self._array

    @value.setter
    def value(self, array: NDArray[Any]) -> None:
        dtype = DType.of(array)
        if array.shape != self.shape or kind_of(dtype) != self.kind:
            raise ValueError(
                f"a param of {self.kind} {list(self.shape)} cannot hold {dtype} {list(array.shape)}"
            )
        self._array, self._dtype = array, dtype
        self._tensor = self._init = None

    def operand(self) -> NDArray[Any]:
        """Return `value` for arithmetic: BF16 widened to float32 (a copy), else as it is."""
        if self._dtype != DType.BF16:
            return self.value
        if self._tensor is None:
            return self.value.astype(np.float32)
        return self.form.load(self._tensor.to_float32())

    def mismatch(self, tensor: Tensor) -> str | None:
        """Say why `tensor` cannot be loaded, or return None.

        Shapes are compared in save form, whether the param has been used or not. Burn compares
        the live shape of one that was used (R27).
        """
        if tensor.shape == self.saved_shape and kind_of(tensor.dtype) == self.kind:
            return None
        text = (
            f"expected {self.kind} {list(self.saved_shape)}, "
            f"found {tensor.dtype} {list(tensor.shape)}"
        )
        if kind_of(tensor.dtype) == self.kind and tensor.shape == self.saved_shape[::-1]:
            text += ", which is its transpose (saved by PyTorch or with the other linear layout?)"
        return text

    def load(self, tensor: Tensor) -> None:
        """Hold `tensor` from now on: its data when used, its dtype and its id at once (R26, R34).

        Reads no byte of it and draws no initial value. A tensor without an id brings a random one;
        a running state keeps its own.

        Raises:
            ValueError: If the shape in save form or the kind differs.
        """
        wrong = self.mismatch(tensor)
        if wrong is not None:
            raise ValueError(f"tensor {tensor.name!r} does not fit the param: {wrong}")
        self._tensor, self._dtype = tensor, tensor.dtype
        self._array = self._init = None
        if not self.running:
            self.id = ParamId.random() if tensor.param_id is None else tensor.param_id

    def tensor(self, name: str) -> Tensor:
        """Return the param as a tensor in save form (R11), copying and reading nothing.

        A param that was not used yet draws or reads its value when the tensor is written.
        """
        if self._tensor is not None:
            return self._tensor.replace(name=name, param_id=self.id)
        if self._array is not None:
            held = self.form.save(self._array)
            return Tensor.from_array(name, held, dtype=self._dtype, param_id=self.id)
        return Tensor.deferred(name, self._dtype, self.saved_shape, self._saved, param_id=self.id)

    def _saved(self) -> memoryview:
        """Provide the bytes for the writer, drawing the value now."""
        return Tensor.from_array("", self.form.save(self.value), dtype=self._dtype).buffer()

    def _make(self) -> NDArray[Any]:
        if self._tensor is not None:
            array = self.form.load(self._tensor.numpy())
            array.flags.writeable = False  # saving gives the tensor's bytes
            return array
        assert self._init is not None
        if self.kind == "float" and self._dtype.numpy.kind == "u":
            raise DependencyError(
                "initial values in BF16 need ml_dtypes: pip install 'bpk-lite[desktop]'"
            )
        drawn = self._init.fill(self.shape, *self._fans, generator(self._stream))
        return drawn.astype(self._dtype.numpy, copy=False)

    def __repr__(self) -> str:
        """Show dtype, shape and id, without materialising."""
        flags = ", running" if self.running else "" if self.require_grad else ", frozen"
        return f"<Param {self._dtype} {list(self.shape)} id {int(self.id)}{flags}>"
