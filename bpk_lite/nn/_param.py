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

from bpk_lite.nn._cast import bits_of, convert, convert_tensor, live, stored_of, widen
from bpk_lite.nn._form import IDENTITY, SaveForm
from bpk_lite.nn._random import generator, next_stream
from bpk_lite.pack import DType, ParamId, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from bpk_lite.nn._lora import Lora
    from bpk_lite.nn.init import Initializer

__all__ = ["DTypePolicy", "Kind", "Param", "kind_of"]

Kind = Literal["float", "int", "bool"]
DTypePolicy = Literal["record", "module"]


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
        adapter: the low-rank adapter that `nn.lora` attached, or None (R18).
    """

    __slots__ = (
        "_array", "_casts", "_dtype", "_fans", "_init", "_stream", "_tensor",
        "adapter", "form", "id", "kind", "require_grad", "running", "shape",
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
        self.adapter: Lora | None = None
        self._dtype = dtype
        self._casts: tuple[DType, ...] = (dtype,)
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
        BF16 is ``ml_dtypes.bfloat16`` where that is installed and its bits as ``uint16`` otherwise.
        An assigned array is held without a copy and must have the param's shape and kind; to a BF16
        param, ``uint16`` are bits.
        """
        if self._array is None:
            self._array = self._make()
        return self._array

    @value.setter
    def value(self, array: NDArray[Any]) -> None:
        dtype = self.check(array)
        self._array, self._dtype = array, dtype
        self._tensor = self._init = None

    def check(self, array: NDArray[Any]) -> DType:
        """Return the dtype that the param would have with `array` as its value.

        Raises:
            ValueError: If the shape or the kind differs.
        """
        dtype = DType.of(array)
        if dtype == DType.U16 and self._dtype == DType.BF16:
            dtype = DType.BF16
        if array.shape != self.shape or kind_of(dtype) != self.kind:
            raise ValueError(
                f"a param of {self.kind} {list(self.shape)} cannot hold {dtype} {list(array.shape)}"
            )
        return dtype

    def operand(self) -> NDArray[Any]:
        """Return the value for arithmetic: BF16 widened to float32 (a copy), else as it is.

        With an adapter it is the effective weight, computed at each call (R18).
        """
        base = widen(self.value) if self._dtype == DType.BF16 else self.value
        return base if self.adapter is None else self.adapter.apply(base)

    def wrong_shape(self, tensor: Tensor) -> str | None:
        """Say how the shape of `tensor` differs from the param's in save form, or return None.

        Whether the param has been used plays no role. Burn compares the live shape then (R27).
        """
        if tensor.shape == self.saved_shape:
            return None
        text = self._against(tensor)
        if tensor.shape == self.saved_shape[::-1]:
            text += ", which is its transpose (saved by PyTorch or with the other linear layout?)"
        return text

    def fit(self, tensor: Tensor, dtype_policy: DTypePolicy = "record") -> Tensor:
        """Return `tensor` in the dtype that the param would take it in (R28).

        =======  ===================  =================  =====================
        param    tensor               ``"record"``       ``"module"``
        =======  ===================  =================  =====================
        float    float                as it is           in the param's dtype
        float    int, bool            refused            in the param's dtype
        float    quantized            as it is           as it is
        int      int                  as it is           in the param's dtype
        int      float, bool          refused            in the param's dtype
        bool     any but quantized    as Bool(Native)    as Bool(Native)
        =======  ===================  =================  =====================

        A quantized float param refuses conversion. Data are read only where an element may be
        refused: floats or integers to a narrower integer dtype, and Bool(Native) to numbers.

        Raises:
            ValueError: refused, or an element has no place in the dtype (R29).
        """
        found = tensor.dtype.kind
        if found == "quantized" and self.kind == "float":
            return tensor
        if found != "quantized" and self.kind == "bool":
            return convert_tensor(tensor, DType.BOOL)
        if found != "quantized" and dtype_policy == "module":
            return convert_tensor(tensor, self._dtype)
        if found == self.kind:
            return tensor
        raise ValueError(self._against(tensor))

    def _against(self, tensor: Tensor) -> str:
        return (
            f"expected {self.kind} {list(self.saved_shape)}, "
            f"found {tensor.dtype} {list(tensor.shape)}"
        )

    def load(self, tensor: Tensor) -> None:
        """Hold `tensor` from now on: its data when used, its dtype and its id at once (R26, R34).

        Reads no byte of it and draws no initial value. A tensor without an id brings a random one;
        a running state keeps its own.

        Raises:
            ValueError: If the shape in save form or the kind differs.
        """
        wrong = self.wrong_shape(tensor)
        try:
            if wrong is not None:
                raise ValueError(wrong)
            fitted = self.fit(tensor)
        except ValueError as error:
            raise ValueError(f"tensor {tensor.name!r} does not fit the param: {error}") from None
        self.hold(fitted)

    def hold(self, fitted: Tensor) -> None:
        """Hold a tensor that `wrong_shape` and `fit` have passed."""
        self._tensor, self._dtype = fitted, fitted.dtype
        self._array = self._init = None
        if not self.running:
            self.id = ParamId.random() if fitted.param_id is None else fitted.param_id

    def cast(self, dtype: DType) -> None:
        """Convert to another dtype of the same kind, element by element (R29).

        Nothing is drawn or read: the conversion of a value that nobody has asked for yet waits.

        Raises:
            ValueError: If the kind differs, the param is quantized, or an integer does not fit.
        """
        if dtype.kind != self.kind or self._dtype.kind == "quantized":
            raise ValueError(f"a param of {self._dtype} cannot be cast to {dtype}")
        if self._tensor is not None:
            self._tensor = convert_tensor(self._tensor, dtype)
            self._array = None
        elif self._array is not None:
            bits = convert(bits_of(self._array, self._dtype), self._dtype, dtype)
            self._array = live(bits, dtype)
        else:
            self._casts += (dtype,)
        self._dtype = dtype

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
            if self._dtype.kind == "quantized":
                array = self._tensor.numpy()
            else:
                array = live(stored_of(self._tensor), self._dtype)
            array = self.form.load(array)
            array.flags.writeable = False  # saving gives the tensor's bytes
            return array
        assert self._init is not None
        drawn = self._init.fill(self.shape, *self._fans, generator(self._stream))
        first, *casts = self._casts
        if first.kind == "float":
            bits = convert(np.asarray(drawn, "<f8"), DType.F64, first)
        else:
            bits = bits_of(np.asarray(drawn).astype(first.numpy), first)
        for source, target in zip((first, *casts), casts, strict=False):
            bits = convert(bits, source, target)
        return live(bits, self._dtype)

    def __repr__(self) -> str:
        """Show dtype, shape and id, without materialising."""
        flags = ", running" if self.running else "" if self.require_grad else ", frozen"
        return f"<Param {self._dtype} {list(self.shape)} id {int(self.id)}{flags}>"
