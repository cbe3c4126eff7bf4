"""Tensors as files of their own: what is written, and under which name.

A tensor's name is any text, so it never becomes a path: in a folder the file's name is made of
letters, digits, ".", "_" and "-", and has a piece of the name's hash where that lost something.
"""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import io
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.inspect import content_of
from bpk_lite.nn._cast import convert_tensor
from bpk_lite.pack import (
    DType,
    Layout,
    Part,
    PlanError,
    Tensor,
    TensorNotFound,
    ValidationError,
    WriteError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bpk_lite.inspect import Inspectable

__all__ = ["Output", "extraction", "file_name"]

_LONGEST = 100
_EXTENSIONS = {".npy": False, ".bin": True}  # whether it holds raw bytes
# names that stay: no capitals, since file systems that ignore case would take two for one
_PLAIN = re.compile(r"[a-z0-9_][a-z0-9._-]*")
_MARKED = re.compile(r"-[0-9a-f]{8}$")
# what Windows takes for a device, whatever its extension
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor on its way into a file.

    Attributes:
        name: the tensor's.
        path: the file.
        plan: what is written.
        note: what it is written as.
    """

    name: str
    path: str
    plan: Layout
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"name": self.name, "path": self.path, "bytes": self.plan.size, "as": self.note}


def extraction(held: Inspectable, names: Sequence[str], to: str, *, raw: bool) -> Iterator[Output]:
    """Yield the files to write for the tensors that `names` choose, by name or glob.

    Raises:
        TensorNotFound: nothing has that name.
        PlanError: several tensors for one file, or an extension that contradicts `raw`.
        ValidationError: a quantized tensor whose values cannot be told, without `raw`.
        WriteError: the folder cannot be made.
    """
    chosen = _chosen(content_of(held).tensors, names)
    extension = os.path.splitext(to)[1].lower()
    single = extension in _EXTENSIONS and not os.path.isdir(to)
    if single:
        raw = raw or _EXTENSIONS[extension]
        if raw != _EXTENSIONS[extension]:
            raise PlanError(f"{to}: raw bytes are no .npy file; name it .bin")
        if len(chosen) > 1:
            raise PlanError(f"{to} is one file, but {len(chosen)} tensors match; name a folder")
    plans = [(tensor, *(_raw(tensor) if raw else _npy(tensor))) for tensor in chosen]
    if not single:
        try:
            os.makedirs(to, exist_ok=True)
        except OSError as error:
            raise WriteError(f"{to} is no folder and cannot be made one: {error}") from error
    for tensor, plan, note in plans:
        path = (
            to
            if single
            else os.path.normpath(os.path.join(to, file_name(tensor.name, "bin" if raw else "npy")))
        )
        yield Output(tensor.name, path, plan, note)


def _chosen(tensors: Mapping[str, Tensor], names: Sequence[str]) -> list[Tensor]:
    found: dict[str, Tensor] = {}
    for wanted in names:
        match = [wanted] if wanted in tensors else fnmatch.filter(tensors, wanted)
        if not match:
            close = difflib.get_close_matches(wanted, tensors, n=3)
            hint = f"did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise TensorNotFound(
                f"no tensor among {len(tensors)} is named {wanted!r}; "
                f"{hint or '`bpk inspect` lists them'}"
            )
        found |= {name: tensors[name] for name in match}
    return list(found.values())


def file_name(name: str, extension: str) -> str:
    """Return the name of a file for a tensor: safe everywhere, and another for every tensor."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:_LONGEST].rstrip(".")
    stays = safe == name and _PLAIN.fullmatch(safe) and not _MARKED.search(safe)
    if not stays or _DEVICES.match(safe):
        mark = hashlib.sha256(name.encode()).hexdigest()[:8]
        safe = f"{safe.lstrip('.-') or 'tensor'}-{mark}"
        safe = f"_{safe}" if _DEVICES.match(safe) else safe
    return f"{safe}.{extension}"


def _raw(tensor: Tensor) -> tuple[Layout, str]:
    note = f"{tensor.dtype} {list(tensor.shape)}, raw: row-major, little-endian"
    return _File(tensor, b"", tensor.nbytes), note


def _npy(tensor: Tensor) -> tuple[Layout, str]:
    dtype, stored = tensor.dtype, tensor
    if dtype.scheme is not None:
        reason = dtype.scheme.opaque_reason(tensor.shape, tensor.nbytes)
        if reason is not None:
            raise ValidationError(
                f"the values of tensor {tensor.name!r} cannot be told: {reason}; "
                "--raw writes its bytes"
            )
        stored = Tensor.from_array(tensor.name, tensor.numpy())
        note = f"float32 of {dtype}"
    elif dtype == DType.BF16:
        stored = convert_tensor(tensor, DType.F32)
        note = "float32, exactly, of BF16, which .npy lacks"
    elif dtype.kind == "bool":
        stored = Tensor.deferred(tensor.name, DType.BOOL, tensor.shape, lambda: _bools(tensor))
        note = "bool"
    else:
        note = dtype.numpy.name
    header = io.BytesIO()
    array_type = np.dtype(np.bool_) if dtype.kind == "bool" else stored.dtype.stored
    np.lib.format.write_array_header_1_0(
        header,
        {
            "descr": np.lib.format.dtype_to_descr(array_type),
            "fortran_order": False,
            "shape": tensor.shape,
        },
    )
    plan = _File(stored, header.getvalue(), len(header.getvalue()) + stored.nbytes)
    return plan, f"{note} {list(tensor.shape)}"


def _bools(tensor: Tensor) -> Iterator[np.ndarray[Any, Any]]:
    for piece in tensor.pieces():
        values = np.frombuffer(piece, tensor.dtype.stored)
        if values.max(initial=0) > 1:
            raise ValidationError(
                f"tensor {tensor.name!r} is {tensor.dtype} but holds {values.max()}; "
                "expected 0 and 1 only; --raw writes its bytes"
            )
        yield values.astype(np.uint8)


class _File(Layout):
    """A header, and the bytes of a tensor."""

    __slots__ = ("_header", "size", "tensors")

    def __init__(self, tensor: Tensor, header: bytes, size: int) -> None:
        self._header = header
        self.size = size
        self.tensors = (tensor,)

    def parts(self) -> Iterator[Part]:
        """Yield the bytes in order."""
        if self._header:
            yield Part(memoryview(self._header))
        yield from self.tensors[0].parts()
