"""Metadata as Burn writes it, all tensors at once.

A pack of 100 000 tensors has 8 MB of CBOR. A decoder makes 100 000 dicts of it and a loop looks at
each, which takes twice as long as Burn does. But what Burn's writer makes has one form: a map of
names to maps whose fields stand in one order, so that the same bytes of each descriptor can be
looked at for all of them by one numpy operation. That takes half the time of the decoder alone.

The form is fixed, so a descriptor is found by its ``data_offsets``, and every byte between two of
them must be accounted for. Whatever is otherwise (booleans, quantized tensors, empty ones, other
writers' orders, anything wrong) makes `parse_canonical` return None, and `Metadata` reads the whole
again, slowly, and says what is wrong. So nothing is decided here that is not decided there: a test
holds the two against each other.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bpk_lite.pack._dtype import PLAIN_BY_NAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bpk_lite.pack._dtype import DType
    from bpk_lite.pack._limits import Limits

__all__ = ["Table", "parse_canonical"]

_HEAD = b"gtensors"
_OFFSETS = b"ldata_offsets\x82"
_RANKS = 24  # array heads of one byte
_EXACT = 2.0**53  # up to here a product in binary64 tells whether one in 64 bits overflowed
_PAD = bytes(32)  # so that a window at any place lies inside

# by the first byte of a CBOR integer: how many bytes follow it, or 255
_FOLLOWING = np.full(256, 255, np.uint8)
_FOLLOWING[:24] = 0
_FOLLOWING[24:28] = (1, 2, 4, 8)
# dtypes as they stand in the file, head and text, read as a number of eight bytes
_DTYPES = sorted(
    (int.from_bytes((bytes([0x60 + len(name)]) + name.encode()).ljust(8, b"\0"), "big"), dtype)
    for name, dtype in PLAIN_BY_NAME.items()
)
_DTYPE_KEYS = np.array([key for key, _ in _DTYPES], np.uint64)
_DTYPE_SIZES = np.array([dtype.itemsize for _, dtype in _DTYPES], np.float64)
# keeps the first n + 1 of eight bytes
_KEEP = np.array([(1 << 64) - (1 << 8 * (7 - n)) for n in range(8)], np.uint64)


class Table(NamedTuple):
    """What the metadata says of all tensors, by name, as lists side by side; see `Entry`."""

    names: list[str]
    dtypes: list[DType]
    shapes: list[tuple[int, ...]]
    starts: list[int]
    ends: list[int]
    param_ids: list[int | None]


def parse_canonical(
    blob: bytes, *, data_start: int, limits: Limits
) -> tuple[Table, int, int] | None:
    """Return the tensors of metadata in Burn's form, or None if it has any other.

    Args:
        blob: the CBOR.
        data_start: where the data section begins.
        limits: what to accept; more gives None.

    Returns:
        The tensors; how many fields follow them in the outer map; and where those begin.
    """
    opening = _opening(blob)
    if opening is None:
        return None
    fields, count, start = opening
    if count > limits.tensors:
        return None
    scan = _Scan(blob)
    offsets = scan.places_of(_OFFSETS, start, count)
    if offsets is None:
        return None
    try:
        found = _descriptors(scan, start, offsets, data_start, limits)
    except _NotCanonicalError:
        return None
    if found is None:
        return None
    table, end = found
    return table, fields - 1, end


class _NotCanonicalError(Exception):
    """The bytes have another form."""


def _opening(blob: bytes) -> tuple[int, int, int] | None:
    """Return the fields of the outer map, the number of tensors, and where the first begins."""
    if len(blob) < 10 or not 0xA1 <= blob[0] <= 0xA3 or blob[1:9] != _HEAD:
        return None
    head = blob[9]
    following = {0xB8: 1, 0xB9: 2, 0xBA: 4}.get(head, 0)
    if not (following or 0xA1 <= head <= 0xB7):
        return None
    if not following:
        return blob[0] - 0xA0, head - 0xA0, 10
    return blob[0] - 0xA0, int.from_bytes(blob[10 : 10 + following], "big"), 10 + following


class _Scan:
    """Bytes, and the eight bytes from each place as one big-endian number."""

    def __init__(self, blob: bytes) -> None:
        padded = blob + _PAD
        self.blob = blob
        self.size = len(blob)
        self.bytes: NDArray[Any] = np.frombuffer(padded, np.uint8)
        self._words: NDArray[Any] = np.ndarray((len(padded) - 8,), ">u8", padded, strides=(1,))

    def words(self, places: NDArray[Any]) -> NDArray[Any]:
        """Return the eight bytes from each place as a number."""
        if places.size and int(places.max()) > self.size:
            raise _NotCanonicalError
        found: NDArray[Any] = self._words[places].astype(np.uint64)
        return found

    def expect(self, places: NDArray[Any], text: bytes) -> NDArray[Any]:
        """Return the places behind `text`, of at most eight bytes, which must stand at each."""
        words = self.words(places) >> np.uint64(8 * (8 - len(text)))
        if (words != np.uint64(int.from_bytes(text, "big"))).any():
            raise _NotCanonicalError
        return places + len(text)

    def integers(self, places: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the CBOR integers at the places, and the places behind them."""
        heads = self.bytes[places]
        following = _FOLLOWING[heads].astype(np.int64)
        if (following == 255).any():
            raise _NotCanonicalError
        # a shift by 64 bits is not defined, so an integer in the head alone is taken from there
        shift = (8 * (8 - np.maximum(following, 1))).astype(np.uint64)
        values = np.where(following == 0, heads.astype(np.uint64), self.words(places + 1) >> shift)
        return values, places + 1 + following

    def places_of(self, text: bytes, start: int, count: int) -> NDArray[Any] | None:
        """Return the places behind each `text`, or None if there are not `count` of them.

        The text ends in a byte that is no ASCII, and stands in no valid name: there its last byte
        would continue a character, which no ASCII letter begins.
        """
        ends = np.flatnonzero(self.bytes[start : self.size] == text[-1]) + start
        ends = ends[ends >= start + len(text)]
        last = self.words(ends - 7)
        ends = ends[last == np.uint64(int.from_bytes(text[-8:], "big"))]
        first = self.words(ends - len(text) + 1)
        ends = ends[first == np.uint64(int.from_bytes(text[:8], "big"))]
        return ends + 1 if len(ends) == count else None


def _descriptors(
    scan: _Scan, start: int, offsets: NDArray[Any], data_start: int, limits: Limits
) -> tuple[Table, int] | None:
    """Return all tensors and where the last descriptor ends; None or an error for another form."""
    starts, places = scan.integers(offsets)
    ends, places = scan.integers(places)
    with_id = scan.words(places) == np.uint64(int.from_bytes(b"hparam_i", "big"))
    ids: NDArray[Any] = np.zeros(len(places), np.uint64)
    if with_id.any():
        behind = scan.expect(places[with_id] + 8, b"d")
        ids[with_id], places[with_id] = scan.integers(behind)
    if int(places[-1]) > scan.size:
        return None
    begins = np.empty_like(places)
    begins[0], begins[1:] = start, places[:-1]

    name_from, name_to = _texts(scan, begins)
    if (scan.bytes[name_to] != np.where(with_id, 0xA4, 0xA3)).any():
        return None
    at = scan.expect(name_to + 1, b"edtype")
    heads = scan.bytes[at].astype(np.int64) - 0x60
    if ((heads < 2) | (heads > 7)).any():
        return None
    keys = scan.words(at) & _KEEP[heads]
    codes = np.minimum(np.searchsorted(_DTYPE_KEYS, keys), len(_DTYPES) - 1)
    if (_DTYPE_KEYS[codes] != keys).any():
        return None
    at = scan.expect(at + 1 + heads, b"eshape")
    shapes, at, needed = _shapes(scan, at, _DTYPE_SIZES[codes])
    if (at != offsets - len(_OFFSETS)).any():
        return None

    most = min(limits.tensor_bytes, int(_EXACT))
    lengths = ends - starts  # wraps where a tensor ends before it starts, to a number too large
    if (
        int(ends.max()) > (1 << 63) - data_start
        or int(lengths.max()) > most
        or float(needed.max()) > _EXACT
        or (needed.astype(np.uint64) != lengths).any()
    ):
        return None
    names = _names(scan.blob, name_from.tolist(), name_to.tolist())
    if names is None or not all(map(operator.lt, names, names[1:])):
        return None
    table = Table(
        names,
        [_DTYPES[code][1] for code in codes.tolist()],
        shapes,
        starts.tolist(),
        ends.tolist(),
        [one if has else None for one, has in zip(ids.tolist(), with_id.tolist(), strict=True)],
    )
    return table, int(places[-1])


def _texts(scan: _Scan, places: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return where the texts at `places` begin and end."""
    heads = scan.bytes[places].astype(np.int64)
    if int(heads.min()) >= 0x60 and int(heads.max()) < 0x78:  # all are short, as most are
        begins = places + 1
        ends = begins + (heads - 0x60)
        if int(ends.max()) >= scan.size:
            raise _NotCanonicalError
        return begins, ends
    one, two = scan.bytes[places + 1].astype(np.int64), scan.bytes[places + 2].astype(np.int64)
    conditions = [(heads >= 0x60) & (heads < 0x78), heads == 0x78, heads == 0x79]
    lengths = np.select(conditions, [heads - 0x60, one, one << 8 | two], -1)
    begins = places + np.select(conditions, [1, 2, 3], 0)
    ends = begins + lengths
    if (lengths < 0).any() or int(ends.max()) >= scan.size:
        raise _NotCanonicalError
    return begins, ends


def _shapes(
    scan: _Scan, places: NDArray[Any], sizes: NDArray[Any]
) -> tuple[list[tuple[int, ...]], NDArray[Any], NDArray[Any]]:
    """Return the shapes at `places`, the places behind them, and the bytes they take in binary64.

    A dimension of zero is another form: what its product means depends on the order (C126).
    """
    ranks = scan.bytes[places].astype(np.int64) - 0x80
    if ((ranks < 0) | (ranks >= _RANKS)).any():
        raise _NotCanonicalError
    at = places + 1
    needed = sizes.copy()
    columns = []
    for axis in range(int(ranks.max())):
        has = ranks > axis
        dims: NDArray[Any] = np.ones(len(places), np.uint64)
        dims[has], at[has] = scan.integers(at[has])
        if (dims == 0).any():
            raise _NotCanonicalError
        needed *= dims
        columns.append(dims.tolist())
    if not columns:
        return [()] * len(places), at, needed
    rows = zip(*columns, strict=True)
    if int(ranks.min()) == len(columns):
        return list(rows), at, needed
    return [row[:rank] for row, rank in zip(rows, ranks.tolist(), strict=True)], at, needed


def _names(blob: bytes, begins: list[int], ends: list[int]) -> list[str] | None:
    """Return the texts, or None if one is no UTF-8."""
    text = blob.decode("latin-1")  # slices of it are names, as long as these are ASCII
    names = [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
    if "".join(names).isascii():
        return names
    try:
        return [blob[begin:end].decode() for begin, end in zip(begins, ends, strict=True)]
    except UnicodeDecodeError:
        return None
