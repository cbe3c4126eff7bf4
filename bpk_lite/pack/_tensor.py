"""A named tensor: its description, and its bytes when somebody asks for them."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bpk_lite._door import desktop, inspector
from bpk_lite.pack._convert import as_array, lies_on_device, stored_array
from bpk_lite.pack._data import Deferred, Part, Resident, Window, array_bytes
from bpk_lite.pack._dtype import DType, float32_from_bfloat16
from bpk_lite.pack._errors import (
    PlanError,
    ProviderError,
    TensorBytesSizeMismatch,
    ValidationError,
)
from bpk_lite.pack._format import human_bytes, safe_text
from bpk_lite.pack._metadata import Entry, check_length, needed_bytes
from bpk_lite.pack._param_id import ParamId
from bpk_lite.pack._slicing import split
from bpk_lite.pack._source import read_into

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bpk_lite.pack._data import Data, Provider
    from bpk_lite.pack._source import ByteSource

__all__ = ["Tensor", "read_tensors"]


class Tensor:
    """One tensor of a pack, or for a pack.

    Made by `from_array` and `from_bytes` (resident: the data are in memory and kept by reference),
    by `deferred` (a provider makes them when the writer gets there) or by a `Reader` (a window of
    the file). Which of them it is shows only in what it costs.

    Slicing reads no more of a file than it must: ``t[:10]`` the first ten rows, ``t[3, 5:7]`` two
    elements. ``np.asarray(t)`` and ``torch.from_dlpack(t)`` work as on an array.

    Attributes:
        name: any text.
        dtype: element type.
        shape: dimensions, outermost first.
        param_id: identity of the parameter, or None.
        nbytes: bytes that the tensor takes in a file.
    """

    __slots__ = ("_data", "dtype", "name", "nbytes", "param_id", "shape")

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: Sequence[int],
        nbytes: int,
        data: Data,
        param_id: int | None = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = tuple(shape)
        self.nbytes = nbytes
        self.param_id = None if param_id is None else ParamId(param_id)
        self._data = data

    @classmethod
    def from_array(
        cls,
        name: str,
        array: Any,
        *,
        dtype: DType | str | None = None,
        param_id: int | None = None,
    ) -> Self:
        """Make a tensor of an array: numpy's, or anything with ``__dlpack__`` or ``__array__``.

        Any stride, order of axes and byte order is written right. A numpy array is kept by
        reference, and so is a tensor of another library on the CPU. One on a device stays there
        until it is read, and comes in windows (`bpk_lite.desktop.providers`).

        Args:
            name: name in the pack.
            array: the values.
            dtype: only for a type that numpy lacks, with elements of the same size: BF16 for
                ``uint16`` bits, Flex32 for ``float32``, a boolean store for bools or integers.
            param_id: identity of the parameter.

        Raises:
            TypeError: Burn has no such element type, or `dtype` cannot hold these elements.
        """
        if lies_on_device(array):
            made: Self = desktop().providers.deferred(name, array, dtype=dtype, param_id=param_id)
            return made
        values, found = as_array(array)
        found = found if dtype is None else DType.parse(dtype)
        values = stored_array(values, found)
        return cls(name, found, values.shape, values.nbytes, Resident(values), param_id)

    @classmethod
    def from_bytes(
        cls,
        name: str,
        dtype: DType | str,
        shape: Sequence[int],
        data: Any,
        *,
        param_id: int | None = None,
    ) -> Self:
        """Make a tensor of its bytes: a buffer, row-major and little-endian. Not copied.

        Raises:
            PlanError: the length contradicts shape and dtype (C92). Quantized ones may have any.
        """
        view = array_bytes(data)
        made = cls(name, DType.parse(dtype), shape, view.nbytes, Resident(view), param_id)
        made.check()
        return made

    @classmethod
    def deferred(
        cls,
        name: str,
        dtype: DType | str,
        shape: Sequence[int],
        provider: Provider,
        *,
        nbytes: int | None = None,
        param_id: int | None = None,
    ) -> Self:
        """Make a tensor whose bytes `provider` makes when they are needed (C89, C98).

        A save calls it once, when the writer gets there, and lets go of what it gave before the
        next provider is called. Outside a save each access calls it again.

        Args:
            name: name in the pack.
            dtype: element type.
            shape: dimensions.
            provider: returns a buffer or array, or an iterator of them; a piece may reuse the
                memory of the one before.
            nbytes: total bytes; needed for quantized tensors, otherwise computed.
            param_id: identity of the parameter.

        Raises:
            PlanError: `nbytes` contradicts shape and dtype, or is missing.
        """
        kind = DType.parse(dtype)
        if nbytes is None:
            nbytes = None if kind.itemsize is None else needed_bytes(kind, shape)
            if nbytes is None:
                raise PlanError(
                    f"tensor {name!r}: the length of {kind} {list(shape)} cannot be computed; "
                    "give nbytes"
                )
        made = cls(name, kind, shape, nbytes, Deferred(provider), param_id)
        made.check()
        return made

    @classmethod
    def over(
        cls,
        name: str,
        dtype: DType | str,
        shape: Sequence[int],
        source: ByteSource,
        offset: int,
        nbytes: int,
        *,
        param_id: int | None = None,
    ) -> Self:
        """Make a tensor of `nbytes` bytes of a source, from `offset`. Reads nothing."""
        data = Window(source, offset, nbytes)
        return cls(name, DType.parse(dtype), shape, nbytes, data, param_id)

    @classmethod
    def window(cls, entry: Entry, source: ByteSource, data_start: int) -> Self:
        """Make the tensor that `entry` describes in a pack over `source`. Reads nothing."""
        data = Window(source, data_start + entry.start, entry.nbytes)
        return cls(entry.name, entry.dtype, entry.shape, entry.nbytes, data, entry.param_id)

    def replace(self, *, name: str | None = None, param_id: int | None = None) -> Tensor:
        """Return the same tensor under another name or id. The data are shared."""
        return Tensor(
            self.name if name is None else name,
            self.dtype,
            self.shape,
            self.nbytes,
            self._data,
            self.param_id if param_id is None else param_id,
        )

    def check(self) -> None:
        """Raise `PlanError` if the length contradicts shape and dtype (C92)."""
        complaint = check_length(self.name, self.dtype, self.shape, self.nbytes)
        if complaint is not None:
            raise PlanError(complaint)

    # -- description

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def source(self) -> ByteSource | None:
        """The source that the bytes lie in, or None if they are in memory or still to be made."""
        return self._data.source if isinstance(self._data, Window) else None

    @property
    def source_offset(self) -> int | None:
        """Where the bytes start in `source`, or None if there is none."""
        return self._data.offset if isinstance(self._data, Window) else None

    @property
    def is_deferred(self) -> bool:
        """Whether the bytes are still to be made: by a provider, a gathering or a conversion."""
        return not isinstance(self._data, (Window, Resident))

    # -- bytes

    def buffer(self) -> memoryview:
        """Return all bytes as stored, read-only. No copy where they are in memory or mapped.

        Raises:
            TensorBytesSizeMismatch: the provider gave another number of bytes (C93).
            TensorClosedError, TruncatedError, ReadError: from the source.
        """
        if not isinstance(self._data, Deferred):
            return self._data.read(0, self.nbytes)
        view = self._data.whole(self.nbytes)
        self._check_total(view.nbytes)
        return view

    def read(self, offset: int, length: int) -> memoryview:
        """Return some of the bytes as stored, read-only. Of a source no others are read.

        Raises:
            IndexError: the tensor does not have these bytes.
            TensorBytesSizeMismatch, TensorClosedError, TruncatedError, ReadError: see `buffer`.
        """
        if not 0 <= offset <= offset + length <= self.nbytes:
            raise IndexError(
                f"tensor {self.name!r} has {self.nbytes} bytes, not {offset} to {offset + length}"
            )
        if isinstance(self._data, Deferred):
            return self.buffer()[offset : offset + length]
        return self._data.read(offset, length)

    def to_bytes(self) -> bytes:
        """Return a copy of all bytes as stored."""
        return bytes(self.buffer())

    def pieces(self) -> Iterator[memoryview]:
        """Yield all bytes in order, for a writer: views of at most 8 MiB where possible.

        A piece is valid until the next one is asked for.

        Raises:
            ProviderError: the provider raised; names the tensor, the cause is chained (C100).
            TensorBytesSizeMismatch: the provider gave another number of bytes. Too many are
                noticed before any of the surplus is yielded (C93).
        """
        total = 0
        pieces = self._data.pieces()
        while True:
            try:
                piece = next(pieces, None)
            except Exception as error:
                if not isinstance(self._data, Deferred):
                    raise
                raise ProviderError(
                    f"the provider of tensor {self.name!r} failed: {type(error).__name__}: {error}"
                ) from error
            if piece is None:
                break
            total += piece.nbytes
            if total > self.nbytes:
                self._check_total(total)
            yield piece
            del piece
        self._check_total(total)

    def parts(self) -> Iterator[Part]:
        """Yield `pieces` as parts of a file, for a `Layout`.

        Only what a provider gives may use its memory again (C99).
        """
        name, fleeting = self.name, isinstance(self._data, Deferred)
        # by map, since a generator's frame would keep a piece while the next is made
        return map(partial(_part, name, fleeting), self.pieces())

    def _check_total(self, found: int) -> None:
        if found != self.nbytes:
            raise TensorBytesSizeMismatch(
                f"tensor {self.name!r} declares {self.nbytes} bytes, its provider gave "
                f"{'at least ' if found > self.nbytes else ''}{found}"
            )

    # -- values

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the values as an array of `shape` and ``dtype.numpy``.

        A read-only view without a copy, with two exceptions that have no numpy dtype: Bool(U32)
        becomes bool, and quantized values become float32. Booleans are checked to be 0 or 1, since
        a numpy bool of another value misbehaves.

        Raises:
            ValidationError: a boolean that is not 0 or 1, a shape that numpy cannot have, or a
                quantized tensor whose values cannot be told (C128); `buffer` gives its bytes.
            TensorClosedError, TruncatedError, ReadError: from the source.
        """
        return self._array(self.shape, self.buffer())

    def _array(self, shape: tuple[int, ...], view: memoryview) -> np.ndarray[Any, Any]:
        if self.dtype.scheme is not None:
            reason = self.dtype.scheme.opaque_reason(shape, view.nbytes)
            if reason is not None:
                raise ValidationError(
                    f"the values of tensor {self.name!r} cannot be told: {reason}; "
                    "buffer() gives its bytes"
                )
            return self.dtype.scheme.dequantize(view, shape)
        try:
            # frombuffer keeps the view, and so a mapping, alive; ndarray(buffer=) does not
            raw = np.frombuffer(view, self.dtype.stored).reshape(shape)
        except (ValueError, OverflowError) as error:
            raise ValidationError(
                f"tensor {self.name!r} of shape {list(shape)} cannot be a numpy array: {error}"
            ) from error
        return self._bools(raw) if self.dtype.kind == "bool" else raw

    def _bools(self, raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if raw.size and raw.max() > 1:
            raise ValidationError(
                f"tensor {self.name!r} is {self.dtype} but holds {raw.max()}; "
                "expected 0 and 1 only; buffer() gives its bytes"
            )
        return raw.view(np.bool_) if raw.itemsize == 1 else raw.astype(np.bool_)

    def to_float32(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the values as float32, rounded to nearest; exact for BF16 and F16. Copies."""
        if self.dtype == DType.BF16:
            return float32_from_bfloat16(self.numpy())
        with np.errstate(over="ignore"):
            return self.numpy().astype(np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False and not self._viewable:
            raise ValueError(f"{self.dtype} tensor {self.name!r} cannot be an array without a copy")
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    @property
    def _viewable(self) -> bool:
        return self.dtype != DType.BOOL_U32 and self.dtype.kind != "quantized"

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export to another library (array API standard).

        Views are read-only, which DLPack can say since version 1.0; a consumer that asks for an
        older one gets a copy, so that it cannot write into the file's memory. BF16 is exported as
        bfloat16 with or without ml_dtypes.

        Raises:
            BufferError: a copy is needed and `copy` is False.
        """
        array = self.numpy()
        if copy or (not array.flags.writeable and (max_version is None or max_version[0] < 1)):
            if copy is False:
                raise BufferError(f"tensor {self.name!r} is read-only; this consumer needs a copy")
            array = array.copy()
        keywords = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        if self.dtype == DType.BF16:
            return desktop().export_bfloat16(array.view(np.uint16), **keywords)
        return array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def __getitem__(self, key: Any) -> Any:
        if not self._viewable or any(dim == 0 for dim in self.shape):
            return self.numpy()[key]
        part = split(key, self.shape)
        assert self.dtype.itemsize is not None
        size = self.dtype.itemsize
        view = self.read(part.start * size, (part.stop - part.start) * size)
        return self._array(part.shape, view)[part.key]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor of no dimensions has no length")
        return self.shape[0]

    def __reduce__(self) -> Any:
        if isinstance(self._data, Window) and hasattr(self._data.source, "stamp"):
            # a file travels by its path and is opened again; see `bpk_lite.desktop`
            data = (self._data.source, self._data.offset, self.nbytes)
            return _over_from_pickle, (self.name, self.dtype, self.shape, data, self.param_id)
        return _from_pickle, (self.name, self.dtype, self.shape, self.to_bytes(), self.param_id)

    def __repr__(self) -> str:
        return (
            f"<Tensor {safe_text(self.name)} {self.dtype} {list(self.shape)} "
            f"{human_bytes(self.nbytes)}>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: made of metadata alone, nothing is read."""
        return str(inspector().html(self))


def _part(name: str, fleeting: bool, piece: memoryview) -> Part:
    return Part(piece, name, fleeting)


def _from_pickle(
    name: str, dtype: DType, shape: tuple[int, ...], data: bytes, param_id: int | None
) -> Tensor:
    return Tensor.from_bytes(name, dtype, shape, data, param_id=param_id)


def _over_from_pickle(
    name: str,
    dtype: DType,
    shape: tuple[int, ...],
    data: tuple[ByteSource, int, int],
    param_id: int | None,
) -> Tensor:
    return Tensor.over(name, dtype, shape, *data, param_id=param_id)


def read_tensors(pairs: Sequence[tuple[Tensor, memoryview]]) -> None:
    """Read all bytes of each tensor into the buffer beside it, of its size.

    Those in one source are asked for together, so that it can join neighbours or use threads.

    Raises:
        TensorBytesSizeMismatch, TensorClosedError, TruncatedError, ReadError: see `Tensor.buffer`.
    """
    jobs: dict[int, tuple[ByteSource, list[tuple[int, memoryview]]]] = {}
    for tensor, buffer in pairs:
        data = tensor._data
        if isinstance(data, Window):
            _, of_source = jobs.setdefault(id(data.source), (data.source, []))
            of_source.append((data.offset, buffer))
        else:
            buffer[:] = tensor.buffer()
    for source, of_source in jobs.values():
        read_into(source, of_source)
