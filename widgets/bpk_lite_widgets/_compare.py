"""What differs between two subjects, tensor by tensor, with turns of the event loop in between."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from bpk_lite.inspect import diff

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bpk_lite.inspect import DiffRow
    from bpk_lite_widgets._subject import Subject

__all__ = ["compare"]


async def compare(
    old: Subject, new: Subject, data: bool, progress: Callable[[float, float], None]
) -> tuple[dict[str, Any], Sequence[Any]]:
    """Return the differences of `new` from `old`, for JSON.

    Names, types and shapes first, which read no data; then, if `data`, the values of one tensor
    after the other, so that a cancellation waits for one tensor at most.

    Args:
        old: the first.
        new: the second.
        data: compare values too.
        progress: called with the bytes of the first that are compared, and all of them.
    """
    found = diff(old.content, new.content, data=False)
    rows = list(found.rows)
    pending = [at for at, row in enumerate(rows) if row.status in ("unread", "dtype")]
    sizes = [old.tensor(rows[at].name).nbytes for at in pending]
    if data:
        done, total = 0, sum(sizes)
        for at, size in zip(pending, sizes, strict=True):
            await asyncio.sleep(0)
            name = rows[at].name
            pair = diff({name: old.tensor(name)}, {name: new.tensor(name)})
            rows[at] = pair.rows[0]
            done += size
            progress(done, total)
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    texts = [
        (kind, key, *(None if one is None else _scalar_text(one) for one in pair))
        for kind, changed in (("metadata", found.metadata), ("scalar", found.scalars))
        for key, pair in changed.items()
    ]
    answer = {
        "rows": [_row(row) for row in rows],
        "counts": counts,
        "texts": texts,
        "kinds": list(found.kinds),
        "nbytes": sum(sizes),
        "read": data,
    }
    return answer, ()


def _row(row: DiffRow) -> list[Any]:
    """Return a row as a list: name, status, both types, both shapes, figures, note."""
    return [
        row.name, row.status, row.old_dtype, row.new_dtype,
        None if row.old_shape is None else list(row.old_shape),
        None if row.new_shape is None else list(row.new_shape),
        row.differing, row.elements, _plain(row.max_abs), _plain(row.max_rel), _plain(row.cosine),
        row.note or ("another parameter id" if row.id_changed else ""),
    ]  # fmt: skip


def _plain(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def _scalar_text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value.kind} {value.value}"
