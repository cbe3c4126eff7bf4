"""Which params a store reads or writes (S175 to S183)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from bpk_lite.store._regex import compile_pattern

__all__ = ["PathFilter", "Predicate"]

Predicate: TypeAlias = Callable[[str, str], bool]
"""Takes a path and a container path, such as ``"Struct:Model.Vec.Struct:Linear"``."""


@dataclass(frozen=True, slots=True)
class PathFilter:
    r"""Accepts a path if any criterion does. A new one has none and accepts nothing (S176).

    ``PathFilter(regex=[r"^encoder\."])``, or by Burn's names: ``PathFilter().with_regex(…)``.
    Filters are values: every method returns a changed copy. ``a | b`` unites.

    Attributes:
        regex: patterns that are searched in the path, with Rust's meaning.
        paths: exact paths.
        predicates: functions of path and container path.
        everything: accept all.

    Raises:
        ValueError: a pattern is not a regular expression (where Burn panics, S181).
    """

    regex: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    everything: bool = False
    _exact: frozenset[str] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        regex: str | Iterable[str] = (),
        paths: str | Iterable[str] = (),
        predicates: Iterable[Predicate] = (),
        everything: bool = False,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "regex", (regex,) if isinstance(regex, str) else tuple(regex))
        set_field(self, "paths", (paths,) if isinstance(paths, str) else tuple(paths))
        set_field(self, "predicates", tuple(predicates))
        set_field(self, "everything", everything)
        set_field(self, "_exact", frozenset(self.paths))
        for pattern in self.regex:
            compile_pattern(pattern)

    @classmethod
    def all(cls) -> PathFilter:
        """Return the filter that accepts everything."""
        return cls(everything=True)

    @classmethod
    def none(cls) -> PathFilter:
        """Return the filter that accepts nothing."""
        return cls()

    def matches(self, path: str, container_path: str = "") -> bool:
        """Whether the filter accepts a path."""
        return (
            self.everything
            or path in self._exact
            or any(compile_pattern(pattern).search(path) for pattern in self.regex)
            or any(predicate(path, container_path) for predicate in self.predicates)
        )

    def __or__(self, other: PathFilter) -> PathFilter:
        if self.everything or other.everything:
            return PathFilter.all()
        return PathFilter(
            self.regex + other.regex, self.paths + other.paths, self.predicates + other.predicates
        )

    def or_(self, other: PathFilter) -> PathFilter:
        """Return the union of two filters, as ``|`` does."""
        return self | other

    @property
    def criteria_count(self) -> int:
        """Number of criteria; 1 for the filter that accepts everything (S179)."""
        if self.everything:
            return 1
        return len(self.regex) + len(self.paths) + len(self.predicates)

    @property
    def is_empty(self) -> bool:
        """Whether there is no criterion, so that nothing is accepted."""
        return self.criteria_count == 0

    # -- Burn's builder names

    def with_regex(self, pattern: str) -> PathFilter:
        """Add a pattern."""
        return self.with_regexes([pattern])

    def with_regexes(self, patterns: Iterable[str]) -> PathFilter:
        """Add patterns."""
        return PathFilter((*self.regex, *patterns), self.paths, self.predicates, self.everything)

    def with_full_path(self, path: str) -> PathFilter:
        """Add an exact path."""
        return self.with_full_paths([path])

    def with_full_paths(self, paths: Iterable[str]) -> PathFilter:
        """Add exact paths."""
        return PathFilter(self.regex, (*self.paths, *paths), self.predicates, self.everything)

    def with_predicate(self, predicate: Predicate) -> PathFilter:
        """Add a function of path and container path."""
        return self.with_predicates([predicate])

    def with_predicates(self, predicates: Iterable[Predicate]) -> PathFilter:
        """Add functions of path and container path."""
        return PathFilter(self.regex, self.paths, (*self.predicates, *predicates), self.everything)

    def match_all(self) -> PathFilter:
        """Accept everything."""
        return PathFilter(self.regex, self.paths, self.predicates, everything=True)

    def clear_regex(self) -> PathFilter:
        """Drop all patterns."""
        return PathFilter((), self.paths, self.predicates, self.everything)

    def clear_paths(self) -> PathFilter:
        """Drop all exact paths."""
        return PathFilter(self.regex, (), self.predicates, self.everything)

    def clear_predicates(self) -> PathFilter:
        """Drop all functions."""
        return PathFilter(self.regex, self.paths, (), self.everything)

    def clear(self) -> PathFilter:
        """Drop everything."""
        return PathFilter()

    def __str__(self) -> str:
        """Return Burn's text form (S182)."""
        if self.everything:
            return "PathFilter::all()"
        if self.is_empty:
            return "PathFilter::none()"
        parts = []
        if self.regex:
            parts.append("regex: [" + ", ".join(f'Regex("{r}")' for r in self.regex) + "]")
        if self.paths:
            parts.append("paths: [" + ", ".join(f'"{p}"' for p in self.paths) + "]")
        if self.predicates:
            parts.append(f"predicates: {len(self.predicates)}")
        return f"PathFilter[{', '.join(parts)}]"
