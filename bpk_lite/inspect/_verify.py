"""What is odd about a pack that opens all the same (C87, C128; bugs A4, A6, A14 in their kind).

Burn's reader, and ours, open packs with overlapping or misaligned ranges, gaps, and quantized
tensors of any length. No writer makes them; a tool that trusts a file wants to know.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bpk_lite.pack import ALIGNMENT, WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpk_lite.pack import Entry, Reader
    from bpk_lite.pack._canonical import Table

__all__ = ["Finding", "verify"]

_HEADER = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """One odd thing.

    Attributes:
        code: what kind, for programs: ``"misaligned"``, ``"overlap"``, ``"gap"``, ``"padding"``,
            ``"trailing"``, ``"quantized-length"``, ``"quantized-unknown"``, ``"duplicate-id"``,
            ``"bool-value"``, ``"old-version"`` or ``"empty"``.
        message: for people: what, where, found, expected.
        tensor: the tensor concerned, or None.
    """

    code: str
    message: str
    tensor: str | None = None


def verify(pack: Reader, *, data: bool = True) -> list[Finding]:
    """Return what is odd about an open pack; an empty list for one as Burn writes it.

    Args:
        pack: the pack.
        data: also read what must have certain values: paddings, gaps and booleans. Other data are
            never read.
    """
    entries = pack.entries()
    findings = from_entries(pack, entries)
    if data:
        findings += _unused_bytes(pack, entries)
        findings += _bools(pack, entries)
    return findings


def from_entries(pack: Reader, entries: list[Entry]) -> list[Finding]:
    """Return what the metadata alone tell; `entries` are the pack's."""
    findings = list(_whole(pack, entries))
    findings += _layout(entries)
    findings += _quantized(entries)
    findings += _ids(entries)
    return findings


def is_regular(pack: Reader, table: Table) -> bool:
    """Return whether `from_entries` has nothing to say, for certain.

    For large packs this is what opening can afford; False means no more than to look closely.
    """
    if not table.names or pack.header.version < 1:
        return False
    if any(dtype.scheme is not None for dtype in table.dtypes):
        return False
    ids = [param_id for param_id in table.param_ids if param_id is not None]
    if len(set(ids)) < len(ids):
        return False
    starts, ends = np.array(table.starts), np.array(table.ends)
    order = np.lexsort((ends, starts))
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    expected = np.append(0, -(-ends[:-1] // ALIGNMENT) * ALIGNMENT)
    return bool(
        np.array_equal(starts, expected) and pack.nbytes == pack.header.data_start + ends[-1]
    )


def _whole(pack: Reader, entries: list[Entry]) -> Iterator[Finding]:
    if pack.header.version < 1:
        yield Finding("old-version", f"version is {pack.header.version}; every writer writes 1")
    if not entries and not pack.metadata and not pack.scalars:
        yield Finding("empty", "no tensors, no metadata, no scalars")
    end = pack.header.data_start + max((entry.end for entry in entries), default=0)
    if pack.nbytes > end:
        yield Finding("trailing", f"{pack.nbytes - end} bytes follow the end of the pack at {end}")


def _layout(entries: list[Entry]) -> Iterator[Finding]:
    """Compare ranges with each other and with the 256-byte grid, in order of data."""
    position, holder = 0, ""
    for entry in entries:
        if entry.start % ALIGNMENT:
            yield Finding(
                "misaligned",
                f"{entry.name!r} starts at {entry.start}, not a multiple of {ALIGNMENT}",
                entry.name,
            )
        if entry.start < position and entry.nbytes:
            yield Finding(
                "overlap",
                f"{entry.name!r} at {entry.start} to {entry.end} overlaps {holder!r}, "
                f"which ends at {position}",
                entry.name,
            )
        expected = -(-position // ALIGNMENT) * ALIGNMENT
        if entry.start > expected:
            yield Finding(
                "gap",
                f"{entry.start - expected} unused bytes before {entry.name!r} at {entry.start}; "
                f"the tensors before it end at {position}",
                entry.name,
            )
        if entry.end > position:
            position, holder = entry.end, entry.name


def _quantized(entries: list[Entry]) -> Iterator[Finding]:
    for entry in entries:
        scheme = entry.dtype.scheme
        if scheme is None:
            continue
        if scheme.foreign is not None:
            yield Finding(
                "quantized-unknown",
                f"{entry.name!r}: its scheme has fields this release does not know",
                entry.name,
            )
            continue
        layout = scheme.layout(entry.shape)
        if layout is None:
            yield Finding(
                "quantized-length",
                f"{entry.name!r}: the scheme {scheme} does not fit shape {list(entry.shape)}",
                entry.name,
            )
        elif layout[2] != entry.nbytes:
            yield Finding(
                "quantized-length",
                f"{entry.name!r} has {entry.nbytes} bytes, its scheme asks for {layout[2]}",
                entry.name,
            )


def _ids(entries: list[Entry]) -> Iterator[Finding]:
    """Report ids that several parameters share.

    The states of one parameter in an optimizer record do too, with the id in their names (R44).
    """
    names = defaultdict(list)
    for entry in entries:
        if entry.param_id is not None and not entry.name.startswith(f"{int(entry.param_id)}."):
            names[entry.param_id].append(entry.name)
    for param_id, sharing in names.items():
        if len(sharing) > 1:
            yield Finding(
                "duplicate-id",
                f"{len(sharing)} tensors share the parameter id {param_id}: "
                f"{', '.join(map(repr, sharing[:4]))}{', …' if len(sharing) > 4 else ''}",
                sharing[0],
            )


def _unused_bytes(pack: Reader, entries: list[Entry]) -> Iterator[Finding]:
    start = pack.header.data_start
    position = _HEADER + pack.header.metadata_size
    used = [(start + entry.start, start + entry.end) for entry in entries if entry.nbytes]
    for low, high in used or [(min(start, pack.nbytes),) * 2]:
        if low > position and not _all_zero(pack, position, low):
            yield Finding("padding", f"the unused bytes {position} to {low} are not all zero")
        position = max(position, high)


def _all_zero(pack: Reader, low: int, high: int) -> bool:
    return not any(
        np.frombuffer(pack.source.read_at(at, min(WINDOW, high - at)), np.uint8).any()
        for at in range(low, high, WINDOW)
    )


def _bools(pack: Reader, entries: list[Entry]) -> Iterator[Finding]:
    for entry in entries:
        if entry.dtype.kind != "bool":
            continue
        for piece in pack[entry.name].pieces():
            largest = np.frombuffer(piece, entry.dtype.stored).max(initial=0)
            if largest > 1:
                yield Finding(
                    "bool-value",
                    f"{entry.name!r} is {entry.dtype} but holds {largest}; expected 0 and 1 only",
                    entry.name,
                )
                break
