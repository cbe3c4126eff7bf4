r"""A hash of what a pack holds, not of how it is laid out.

The same tensors, scalars and metadata give the same digest in any order, at any alignment, and in
any file format that keeps them. Everything is hashed with its length, so no two contents have one
encoding. With ``u64(n)`` for eight little-endian bytes, ``text(t)`` for ``u64(len) + utf8`` and
``H`` for the algorithm, anybody can recompute it::

    tensor  = H(b"bpk_lite tensor 1\n"
                + u64(len(dtype)) + dtype        the dtype's CBOR item, as Burn writes it
                + u64(rank) + u64(dim) for each dimension
                + u64(nbytes) + bytes)           as stored: row-major, little-endian

    digest  = H(b"bpk_lite content 1\n"
                + u64(tensors), then for each by its name's UTF-8 bytes
                      text(name) + (b"\x01" + u64(param id) or b"\x00") + tensor
                + u64(scalars), then for each by name
                      text(name) + text(kind) + eight bytes of the value: u64, two's complement,
                      IEEE 754 binary64, or u64(0 or 1) for Bool
                + u64(entries of metadata), then for each by key
                      text(key) + text(value))

With ``tensors_only`` ids count as absent, and there are no scalars and no metadata.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from bpk_lite.inspect._content import content_of
from bpk_lite.pack._cbor import encode

if TYPE_CHECKING:
    from bpk_lite.inspect._content import Inspectable
    from bpk_lite.pack import Progress, Scalar, Tensor

__all__ = ["digest", "tensor_digest"]

_SCALARS = {"Int": "<q", "UInt": "<Q", "Float": "<d", "Bool": "<Q"}


def digest(
    pack: Inspectable,
    algorithm: str = "sha256",
    *,
    tensors_only: bool = False,
    progress: Progress | None = None,
) -> str:
    """Return the hexadecimal content hash of a pack, record, file of weights, or of arrays.

    The module's docstring defines it. Reads every tensor once, by pieces.

    Args:
        pack: what to hash.
        algorithm: a name that hashlib guarantees and that has a fixed length.
        tensors_only: hash names, dtypes, shapes and data, but neither parameter ids nor scalars
            nor metadata: equal weights then have equal digests, whoever saved them.
        progress: called as ``progress(name, done_bytes, total_bytes)`` after each piece, over all
            tensors; what it raises ends the work and comes out here.

    Raises:
        ValueError: no such algorithm.
        TypeError: `pack` holds no tensors.
        ReadError, TruncatedError, TensorClosedError, ProviderError: from a tensor.
    """
    content = content_of(pack)
    whole = _hash(algorithm)
    whole.update(b"bpk_lite content 1\n" + _u64(len(content.tensors)))
    total, done = sum(tensor.nbytes for tensor in content.tensors.values()), 0
    for name, tensor in content.tensors.items():

        def step(name: str, of_tensor: int, _: int, before: int = done) -> None:
            if progress is not None:
                progress(name, before + of_tensor, total)

        param_id = None if tensors_only else tensor.param_id
        whole.update(_text(name))
        whole.update(b"\0" if param_id is None else b"\1" + _u64(int(param_id)))
        whole.update(_tensor(tensor, algorithm, step))
        done += tensor.nbytes
    scalars = {} if tensors_only else content.scalars
    whole.update(_u64(len(scalars)))
    for name, scalar in sorted(scalars.items()):
        whole.update(_text(name) + _text(scalar.kind) + _value(scalar))
    metadata = {} if tensors_only else content.metadata
    whole.update(_u64(len(metadata)))
    for key, value in sorted(metadata.items()):
        whole.update(_text(key) + _text(value))
    return str(whole.hexdigest())


def tensor_digest(
    tensor: Tensor,
    algorithm: str = "sha256",
    *,
    progress: Progress | None = None,
) -> str:
    """Return the hexadecimal hash of a tensor's dtype, shape and data: not of its name or id.

    Arguments and errors as for `digest`; progress counts the bytes of this tensor.
    """
    return _tensor(tensor, algorithm, progress).hex()


def _tensor(tensor: Tensor, algorithm: str, progress: Progress | None) -> bytes:
    dtype = encode(tensor.dtype.to_cbor())
    found = _hash(algorithm)
    found.update(b"bpk_lite tensor 1\n" + _u64(len(dtype)) + dtype + _u64(len(tensor.shape)))
    found.update(b"".join(map(_u64, tensor.shape)) + _u64(tensor.nbytes))
    done = 0
    for piece in tensor.pieces():
        found.update(piece)
        done += piece.nbytes
        if progress is not None:
            progress(tensor.name, done, tensor.nbytes)
    return bytes(found.digest())


def _hash(algorithm: str) -> Any:
    import hashlib  # here, because looking at a pack needs none

    fixed = {name for name in hashlib.algorithms_guaranteed if not name.startswith("shake")}
    if algorithm not in fixed:
        raise ValueError(f"algorithm is one of {', '.join(sorted(fixed))}, not {algorithm!r}")
    return hashlib.new(algorithm)


def _u64(number: int) -> bytes:
    return struct.pack("<Q", number)


def _text(text: str) -> bytes:
    data = text.encode()
    return _u64(len(data)) + data


def _value(scalar: Scalar) -> bytes:
    return struct.pack(_SCALARS[scalar.kind], scalar.value)
