"""A module's params as a record (R11, R21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpk_lite.nn._walk import named_params
from bpk_lite.records import ModuleRecord

if TYPE_CHECKING:
    from bpk_lite.nn._group import ParamGroup

__all__ = ["into_record"]


def into_record(root: object, group: ParamGroup | None = None) -> ModuleRecord:
    """Return the params below `root`, or those of them in `group`, as a record.

    `root` may also be a `Param`, whose path is empty, or a list, tuple or dict of modules (R14).

    Raises:
        ValueError: If the module contains itself, or two params have one path.
    """
    return ModuleRecord(
        param.tensor(path)
        for path, param in named_params(root).items()
        if group is None or group.matches(param.id, path)
    )
