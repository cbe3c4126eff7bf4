"""Load tensors into a module: match by path, check everything, then apply (R24 to R34).

Burn stops at the first of three checks (R30), panics on a dtype that cannot be converted (R28), and
loses the module in both cases (R32). Here all findings come in one error and the module is
unchanged, so there is one round of fixing. Conversions that may refuse an element are made before
the first param changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from bpk_lite.nn._param import DTypePolicy
from bpk_lite.nn._walk import named_params
from bpk_lite.pack import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpk_lite.nn._param import Param
    from bpk_lite.pack import Tensor

__all__ = ["LoadReport", "load_tensors"]

_SHOWN = 20  # entries a list in a message has before it is cut
_CANDIDATES = 2000  # names among which a close one is looked for; the search is slow


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load did.

    Attributes:
        loaded: the paths that were loaded, in traversal order.
        missing: the paths that had no tensor and were left as they are, in traversal order.
        unused: the names of tensors that no param asked for, sorted.
        mismatched: the paths whose tensor has another shape and which were left as they are, in
            traversal order; empty unless the load was told not to validate.
    """

    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    mismatched: tuple[str, ...] = ()


def load_tensors(
    root: object,
    tensors: Mapping[str, Tensor],
    *,
    allow_partial: bool = False,
    allow_unused: bool = False,
    validate: bool = True,
    dtype_policy: DTypePolicy = "record",
) -> LoadReport:
    """Load `tensors` into the params below `root`; see `Module.load_tensors`.

    `root` may also be a `Param`, or a list, tuple or dict of modules. A param with several paths
    (R19) takes the tensor of its first one. In a file that Burn wrote that is the occurrence which
    training steps; the others must be there and fit.

    Raises:
        RecordError: If anything is missing, unused or of another shape or dtype, unless allowed.
        ValueError: If the module contains itself, two params have one path, or there is no such
            policy.
    """
    if dtype_policy not in get_args(DTypePolicy):
        raise ValueError(f'a dtype policy is "record" or "module", not {dtype_policy!r}')
    params = named_params(root)
    found = {path: tensors[path] for path in params if path in tensors}
    missing = tuple(path for path in params if path not in found)
    unused = tuple(sorted(name for name in tensors if name not in params))
    wrong: dict[str, str] = {}
    other_kind = False
    ready: dict[str, Tensor] = {}
    for path, tensor in found.items():
        text = params[path].wrong_shape(tensor)
        if text is not None:
            wrong[path] = text
            continue
        try:
            ready[path] = params[path].fit(tensor, dtype_policy)
        except ValueError as error:
            wrong[path] = str(error)
            other_kind = other_kind or dtype_policy == "record"
    skipped = () if validate else tuple(p for p in wrong if params[p].wrong_shape(found[p]))
    for path in skipped:
        del wrong[path]
    if wrong or (missing and not allow_partial) or (unused and not allow_unused):
        lists = _Lists(
            {} if allow_partial else {path: params[path] for path in missing},
            {} if allow_unused else {name: tensors[name] for name in unused},
            wrong,
            other_kind,
        )
        raise RecordError(
            lists.message(type(root).__name__, unused),
            missing=lists.missing,
            unused=lists.unused,
            mismatched=lists.wrong,
        )
    done: set[int] = set()
    for path, tensor in ready.items():
        param = params[path]
        if id(param) not in done:
            param.hold(tensor)
            done.add(id(param))
    return LoadReport(tuple(ready), missing, unused, skipped)


@dataclass(frozen=True, slots=True)
class _Lists:
    """The three lists of an error: what is missing, what is unused, what is wrong and why.

    `other_kind` says whether something is wrong that a conversion might mend.
    """

    missing: Mapping[str, Param]
    unused: Mapping[str, Tensor]
    wrong: Mapping[str, str]
    other_kind: bool

    def message(self, module: str, spare: tuple[str, ...]) -> str:
        """Write the lists; `spare` are the tensor names that may be misspelt paths."""
        missing, unused, wrong = self.missing, self.unused, self.wrong
        lines = [f"the tensors do not fit {module}; nothing was loaded"]
        if missing:
            lines.append(f"missing, {len(missing)} params without a tensor:")
            shown = ((path, f"{p.dtype} {list(p.saved_shape)}") for path, p in missing.items())
            lines += _cut(
                (f"{path}: expected {text}{_closest(path, spare)}" for path, text in shown),
                len(missing),
            )
        if unused:
            lines.append(f"unused, {len(unused)} tensors without a param:")
            shown = ((name, f"{t.dtype} {list(t.shape)}") for name, t in unused.items())
            lines += _cut((f"{name}: found {text}" for name, text in shown), len(unused))
        if wrong:
            lines.append(f"mismatched, {len(wrong)} tensors of another shape or kind:")
            lines += _cut((f"{path}: {text}" for path, text in wrong.items()), len(wrong))
        remedies = []
        if missing:
            remedies.append("allow_partial=True leaves params without a tensor as they are")
        if unused:
            remedies.append("allow_unused=True ignores tensors without a param")
        if wrong:
            remedies.append("build the module with the sizes that the file has")
        if self.other_kind:
            remedies.append('dtype_policy="module" converts what has another dtype')
        lines.append("; ".join(remedies))
        return "\n".join(lines)


def _cut(entries: Iterable[str], total: int) -> list[str]:
    lines = [f"  {entry}" for entry, _ in zip(entries, range(_SHOWN), strict=False)]
    if total > _SHOWN:
        lines.append(f"  … and {total - _SHOWN} more")
    return lines


def _closest(path: str, names: tuple[str, ...]) -> str:
    if not names or len(names) > _CANDIDATES:
        return ""
    from difflib import get_close_matches  # only an error needs it

    close = get_close_matches(path, names, n=1)
    return f" (the closest name is {close[0]!r})" if close else ""
