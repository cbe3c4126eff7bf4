"""Rename tensors: by patterns (S157 to S163), and list indices without gaps (S164 to S174)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bpk_lite.store._errors import NameCollision
from bpk_lite.store._regex import compile_pattern, replace_all

if TYPE_CHECKING:
    from bpk_lite.pack import Tensor

__all__ = ["KeyRemapper", "Pairs", "map_indices_contiguous", "map_indices_contiguous_except"]

Pairs: TypeAlias = "list[tuple[str, str]]"
"""New and old name of each tensor, changed or not."""


@dataclass(frozen=True, slots=True)
class KeyRemapper:
    r"""An ordered list of patterns with replacements, in Rust's syntax.

    Each pattern is applied to the text that the one before left, everywhere it is found; anchor it
    to restrict it. ``KeyRemapper({r"^module\.": ""})``.

    Attributes:
        patterns: pairs of pattern and replacement.

    Raises:
        ValueError: a pattern is not a regular expression.
    """

    patterns: tuple[tuple[str, str], ...] = ()

    def __init__(self, patterns: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        pairs = patterns.items() if isinstance(patterns, Mapping) else patterns
        object.__setattr__(self, "patterns", tuple((one, other) for one, other in pairs))
        for pattern, _ in self.patterns:
            compile_pattern(pattern)

    @classmethod
    def from_patterns(cls, patterns: Iterable[tuple[str, str]]) -> KeyRemapper:
        """Return a remapper of pairs."""
        return cls(patterns)

    def add_pattern(self, pattern: str, replacement: str) -> KeyRemapper:
        """Return a remapper with one more pattern."""
        return KeyRemapper((*self.patterns, (pattern, replacement)))

    @property
    def is_empty(self) -> bool:
        """Whether there is no pattern."""
        return not self.patterns

    def rename(self, name: str) -> str:
        """Return the new name."""
        for pattern, replacement in self.patterns:
            name = replace_all(compile_pattern(pattern), replacement, name)
        return name

    def remap(self, tensors: Iterable[Tensor]) -> tuple[list[Tensor], Pairs]:
        """Return the tensors under their new names, in order, and the pairs of new and old name.

        Raises:
            NameCollision: two tensors get one name (Burn keeps one of them silently, S162).
        """
        given = list(tensors)
        return _renamed(given, [self.rename(tensor.name) for tensor in given])


def map_indices_contiguous(tensors: Iterable[Tensor]) -> tuple[list[Tensor], Pairs]:
    """Number the indices of every list from 0 without gaps (S164 to S170).

    Weights of a list that really has holes, layers without params that the target has too, move to
    the wrong index (S173): `map_indices_contiguous_except` keeps such lists.

    Raises:
        NameCollision: two names for one number, ``fc.1`` and ``fc.01``.
    """
    return map_indices_contiguous_except(tensors, ())


def map_indices_contiguous_except(
    tensors: Iterable[Tensor], keep: str | Iterable[str] | Callable[[str], bool]
) -> tuple[list[Tensor], Pairs]:
    """Number all lists from 0 but those whose prefix `keep` matches (S171).

    Args:
        tensors: the tensors.
        keep: patterns that are searched in the prefix of a list, without its trailing dot and with
            original indices; or a function of the prefix.

    Raises:
        ValueError: a pattern is not a regular expression.
        NameCollision: two tensors get one name.
    """
    given = list(tensors)
    return _renamed(given, contiguous_names([tensor.name for tensor in given], keep))


def contiguous_names(
    names: list[str], keep: str | Iterable[str] | Callable[[str], bool] = ()
) -> list[str]:
    """Return the names with contiguous indices, in order."""
    kept = keep if callable(keep) else _searches(keep)
    groups: dict[str, set[int]] = defaultdict(set)
    split = [name.split(".") for name in names]
    for parts in split:
        for position, part in enumerate(parts):
            number = _index(part)
            if number is not None:
                groups[".".join(parts[:position])].add(number)
    numbering = {
        prefix: {old: new for new, old in enumerate(sorted(numbers))}
        for prefix, numbers in groups.items()
        if not kept(prefix)
    }
    return [".".join(_numbered(parts, numbering)) for parts in split]


def _numbered(parts: list[str], numbering: Mapping[str, Mapping[int, int]]) -> list[str]:
    renamed = []
    for position, part in enumerate(parts):
        number = _index(part)
        group = None if number is None else numbering.get(".".join(parts[:position]))
        renamed.append(part if group is None or number is None else str(group[number]))
    return renamed


def _index(part: str) -> int | None:
    """Return the number that a segment is, as Rust parses an unsigned integer (S166)."""
    digits = part.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > 20:
        return None
    number = int(digits)
    return number if number < 1 << 64 else None


def _searches(keep: str | Iterable[str]) -> Callable[[str], bool]:
    patterns = [compile_pattern(one) for one in ((keep,) if isinstance(keep, str) else keep)]
    return lambda prefix: any(pattern.search(prefix) for pattern in patterns)


def _renamed(tensors: list[Tensor], names: list[str]) -> tuple[list[Tensor], Pairs]:
    origin: dict[str, str] = {}
    for tensor, name in zip(tensors, names, strict=True):
        if name in origin:
            raise NameCollision(
                f"{origin[name]!r} and {tensor.name!r} would both be named {name!r}; "
                "change the remapping so that each keeps a name of its own"
            )
        origin[name] = tensor.name
    renamed = [
        tensor if tensor.name == name else tensor.replace(name=name)
        for tensor, name in zip(tensors, names, strict=True)
    ]
    return renamed, list(origin.items())
