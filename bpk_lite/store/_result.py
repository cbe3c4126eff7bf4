"""What applying tensors to a module did, for programs and for people (S184 to S192)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bpk_lite.store._similarity import jaro

__all__ = ["ApplyIssue", "ApplyResult"]

_SHOWN = 10
_SIMILAR = 0.7


@dataclass(frozen=True, slots=True)
class ApplyIssue:
    """A tensor that could not be applied (S185).

    Attributes:
        kind: ``"shape"``, ``"dtype"``, ``"load"`` or ``"adapter"``.
        path: of the param.
        expected: shape or dtype of the param; empty for the other kinds.
        found: shape or dtype of the tensor; the cause for the other kinds.
    """

    kind: Literal["shape", "dtype", "load", "adapter"]
    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        if self.kind in ("shape", "dtype"):
            found = f"expected {self.expected}, found {self.found}"
            return f"{self.kind} mismatch for '{self.path}': {found}"
        what = "could not be loaded" if self.kind == "load" else "could not be adapted"
        return f"'{self.path}' {what}: {self.found}"


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What was applied and what was not. ``print(result)`` is for people.

    Attributes:
        applied: paths that took a tensor, in traversal order.
        skipped: paths that the filter excluded, sorted.
        missing: paths without a tensor, each with its container path, sorted.
        unused: names of tensors that no path asked for, sorted.
        errors: what did not fit, in traversal order.
        converted: dtype that each applied path had before and has now, where they differ.
    """

    applied: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    unused: tuple[str, ...] = ()
    errors: tuple[ApplyIssue, ...] = ()
    converted: tuple[tuple[str, str, str], ...] = ()

    @property
    def is_success(self) -> bool:
        """Whether there are no errors; missing params do not matter (S184)."""
        return not self.errors

    def suggestion(self, path: str) -> str | None:
        """Return the unused name that `path` probably means, or None (S189)."""
        return suggested(path, self.unused)

    def __str__(self) -> str:
        counts = (
            f"applied {len(self.applied)}, skipped (filtered) {len(self.skipped)}, "
            f"missing in source {len(self.missing)}, unused in target {len(self.unused)}, "
            f"errors {len(self.errors)}"
        )
        lines = [counts]
        if self.missing:
            lines += self._enum_hint()
            lines.append("missing in source:")
            for path, _ in self.missing[:_SHOWN]:
                lines.append(f"  {path}")
                close = self.suggestion(path)
                if close is not None:
                    lines.append(f"    Did you mean '{close}'?")
            lines += _rest(len(self.missing))
        for title, entries in (("unused in target", self.unused), ("errors", self.errors)):
            if entries:
                lines.append(f"{title}:")
                lines += [f"  {entry}" for entry in entries[:_SHOWN]]
                lines += _rest(len(entries))
        if self.converted:
            lines.append("changed dtype:")
            lines += [f"  {path}: {old} -> {new}" for path, old, new in self.converted[:_SHOWN]]
            lines += _rest(len(self.converted))
        return "\n".join(lines)

    def _enum_hint(self) -> list[str]:
        enums = [path for path, containers in self.missing if "Enum:" in containers]
        if not enums:
            return []
        return [
            f"{len(enums)} of the missing paths contain an enum variant, for example '{enums[0]}':",
            "  set skip_enum_variants, if the source's names have no variant in them,",
            "  or remap the source's names so that they have",
        ]


def _rest(count: int) -> list[str]:
    return [f"  … and {count - _SHOWN} more"] if count > _SHOWN else []


def suggested(path: str, unused: tuple[str, ...]) -> str | None:
    """Return the name among `unused` that `path` probably means, or None (S189)."""
    parts = path.split(".")
    for position in range(1, len(parts) - 1):
        part = parts[position]
        if len(part) > 1 and part[0].isupper() and any(char.islower() for char in part[1:]):
            shorter = ".".join(parts[:position] + parts[position + 1 :])
            if shorter in unused:
                return shorter
            break
    best, score = None, 0.0
    for name in unused:
        similar = jaro(path, name)
        if similar >= _SIMILAR and similar > score:
            best, score = name, similar
    return best
