"""What differs between two packs, records or files of weights."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from bpk_lite.inspect._compare import compare
from bpk_lite.inspect._content import content_of
from bpk_lite.inspect._stats import plain
from bpk_lite.pack._format import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bpk_lite.inspect._content import Inspectable
    from bpk_lite.pack import Progress, Scalar, Tensor

__all__ = ["Diff", "DiffRow", "diff"]

Status = Literal["added", "removed", "shape", "dtype", "changed", "same", "unread"]
STATUSES: tuple[Status, ...] = (
    "added", "removed", "shape", "dtype", "changed", "unread", "same",
)  # fmt: skip


_WITH_IDS = {"burnpack", ""}


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One name, in both.

    Numbers compare elements as float64, or as exact integers where both are integers of one dtype.
    They are None where there is nothing to compare: other shapes, quantized data whose values
    cannot be told, data that were not read.

    Attributes:
        name: the tensor's.
        status: ``"added"`` and ``"removed"``: it is only in the second or the first. ``"shape"``:
            another shape. ``"dtype"``: another element type; values are compared all the same.
            ``"changed"``: other bytes. ``"same"``: bit for bit. ``"unread"``: shape and dtype agree
            and data were not asked for.
        old_dtype: in the first; None where it is not.
        new_dtype: in the second.
        old_shape: in the first.
        new_shape: in the second.
        old_id: parameter id in the first, or None.
        new_id: in the second.
        elements: elements compared.
        differing: elements with other values; two NaNs count as equal. A changed tensor with none
            of them differs only in signs of zeros or in the bits of NaNs.
        max_abs: largest absolute difference where both are finite.
        max_rel: largest difference relative to the larger of the two, 0 to 2, likewise.
        cosine: cosine similarity of the elements that are finite in both; None for all zeros.
        nonfinite: elements that differ and are NaN or infinite in one of them.
        id_changed: whether the ids differ, or only one of them has one; False where one of the two
            is a file of a format that has no ids.
        note: why there are no numbers.
    """

    name: str
    status: Status
    old_dtype: str | None = None
    new_dtype: str | None = None
    old_shape: tuple[int, ...] | None = None
    new_shape: tuple[int, ...] | None = None
    old_id: int | None = None
    new_id: int | None = None
    elements: int | None = None
    differing: int | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    cosine: float | None = None
    nonfinite: int | None = None
    id_changed: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """Two packs side by side.

    Attributes:
        rows: every name of both, in byte order.
        metadata: keys whose text differs: (in the first, in the second), None where it is absent.
        scalars: names whose scalar differs in kind or value, likewise.
        kinds: what each is, as its names tell: which record of Burn's.
    """

    rows: tuple[DiffRow, ...]
    metadata: Mapping[str, tuple[str | None, str | None]]
    scalars: Mapping[str, tuple[Scalar | None, Scalar | None]]
    kinds: tuple[str, str]

    @property
    def counts(self) -> dict[Status, int]:
        """Number of rows by status; all statuses are there."""
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in STATUSES}

    @property
    def is_same(self) -> bool:
        """Whether all is equal: tensors bit for bit, with ids, scalars and metadata.

        Two packs are the same exactly if `digest` says so. Unread data are not known to be.
        """
        return not self.differs and all(row.status == "same" for row in self.rows)

    @property
    def differs(self) -> bool:
        """Whether anything is known to differ."""
        return bool(self.metadata or self.scalars) or any(
            row.status not in {"same", "unread"} or row.id_changed for row in self.rows
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as strict JSON can hold it."""
        return {
            "is_same": self.is_same,
            "kinds": list(self.kinds),
            "counts": dict(self.counts),
            "tensors": [
                {key: plain(value) for key, value in asdict(row).items()} for row in self.rows
            ],
            "metadata": {key: list(pair) for key, pair in self.metadata.items()},
            "scalars": {
                key: [one and [one.kind, plain(one.value)] for one in pair]
                for key, pair in self.scalars.items()
            },
        }

    def __str__(self) -> str:
        """Return a line for each thing that differs, and a line of totals."""
        lines = [f"kind: {' → '.join(self.kinds)}"] if self.kinds[0] != self.kinds[1] else []
        lines += [
            f"metadata {safe_text(key)}: {_step(*pair)}" for key, pair in self.metadata.items()
        ]
        lines += [f"scalar {safe_text(key)}: {_step(*pair)}" for key, pair in self.scalars.items()]
        lines += [
            f"{row.status} {safe_text(row.name)}: {describe(row)}"
            for row in self.rows
            if row.status != "same" or row.id_changed
        ]
        totals = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        return "\n".join([*lines, totals or "no tensors"])

    def _repr_html_(self) -> str:
        from bpk_lite.inspect._html import html

        return html(self)


def describe(row: DiffRow) -> str:
    """Return the facts of a row in words."""
    parts = []
    for old, new in ((row.old_dtype, row.new_dtype), (row.old_shape, row.new_shape)):
        shown = [str(list(x)) if isinstance(x, tuple) else x for x in (old, new) if x is not None]
        parts.append(" → ".join(dict.fromkeys(shown)))
    if row.id_changed:
        parts.append(f"id {row.old_id} → {row.new_id}")
    if row.differing is not None and row.status != "same":
        parts.append(f"{row.differing:,} of {row.elements:,} elements differ")
        for label, value in (("max abs", row.max_abs), ("max rel", row.max_rel)):
            if value is not None and row.differing:
                parts.append(f"{label} {value:.3g}")
        if row.cosine is not None:
            parts.append(f"cosine {row.cosine:.6f}")
        if row.nonfinite:
            parts.append(f"{row.nonfinite:,} NaN or infinite in one")
    if row.note:
        parts.append(row.note)
    return ", ".join(parts)


def _step(old: object, new: object) -> str:
    return " → ".join("absent" if one is None else safe_text(str(one)) for one in (old, new))


def diff(
    a: Inspectable,
    b: Inspectable,
    *,
    data: bool = True,
    progress: Progress | None = None,
) -> Diff:
    """Compare two packs, records, files of weights, or mappings from name to array.

    Tensors are paired by name and read window by window, both at once.

    Args:
        a: the first, the old one.
        b: the second, the new one.
        data: False compares names, dtypes, shapes and ids only, and reads no data.
        progress: called as ``progress(name, done_bytes, total_bytes)`` after each window, in bytes
            of the first; what it raises ends the work and comes out here.

    Raises:
        TypeError: one of them holds no tensors.
        ReadError, TruncatedError, TensorClosedError, ProviderError: from a tensor.
    """
    old, new = content_of(a), content_of(b)
    pairs = [
        (old.tensors[name], new.tensors[name])
        for name in old.tensors
        if name in new.tensors and old.tensors[name].shape == new.tensors[name].shape
    ]
    with_ids = {old.format, new.format} <= _WITH_IDS
    total, done = sum(one.nbytes for one, _ in pairs) if data else 0, 0
    rows = []
    for name in sorted(old.tensors.keys() | new.tensors.keys()):
        one, other = old.tensors.get(name), new.tensors.get(name)

        def step(bytes_done: int, name: str = name, before: int = done) -> None:
            if progress is not None:
                progress(name, before + bytes_done, total)

        row = _row(name, one, other, data, step)
        if with_ids and one is not None and other is not None and row.old_id != row.new_id:
            row = replace(row, id_changed=True)
        rows.append(row)
        if data and one is not None and other is not None and one.shape == other.shape:
            done += one.nbytes
    return Diff(
        tuple(rows),
        _differing(old.metadata, new.metadata),
        _differing(old.scalars, new.scalars),
        (old.kind, new.kind),
    )


def _row(
    name: str, one: Tensor | None, other: Tensor | None, data: bool, step: Callable[[int], None]
) -> DiffRow:
    facts: dict[str, Any] = {}
    for prefix, tensor in (("old", one), ("new", other)):
        if tensor is not None:
            facts[f"{prefix}_dtype"] = str(tensor.dtype)
            facts[f"{prefix}_shape"] = tensor.shape
            facts[f"{prefix}_id"] = None if tensor.param_id is None else int(tensor.param_id)
    if one is None or other is None:
        return DiffRow(name, "added" if one is None else "removed", **facts)
    if one.shape != other.shape:
        return DiffRow(name, "shape", **facts)
    retyped = one.dtype != other.dtype
    if not data:
        return DiffRow(name, "dtype" if retyped else "unread", **facts)
    found = compare(one, other, step)
    status: Status = "dtype" if retyped else "same" if found.identical else "changed"
    if not found.note:
        facts |= {
            "elements": one.size,
            "differing": found.differing,
            "max_abs": found.max_abs,
            "max_rel": found.max_rel,
            "cosine": found.cosine,
            "nonfinite": found.nonfinite,
        }
    return DiffRow(name, status, **facts, note=found.note)


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        key: (old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    }
