"""Groups of params, by id, path or pattern (R21 to R23)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bpk_lite.nn._walk import walk

if TYPE_CHECKING:
    from bpk_lite.nn._module import Module

__all__ = ["ParamGroup"]

_Matcher: TypeAlias = Callable[[int, str | None], bool]


@dataclass(frozen=True, slots=True)
class ParamGroup:
    """A choice of params: those that a matcher takes and no exclusion does.

    Made by the class methods below, named as Burn's. Where no path is known, as for the states of
    an old optimizer record, what looks at paths does not match (R23).
    """

    _matchers: tuple[_Matcher, ...]
    _exclusions: tuple[_Matcher, ...] = ()
    _text: str = ""

    @classmethod
    def all(cls) -> ParamGroup:
        """Take every param."""
        return cls((lambda _id, _path: True,), (), "all")

    @classmethod
    def ids(cls, ids: Iterable[int]) -> ParamGroup:
        """Take the params of these ids."""
        wanted = frozenset(int(one) for one in ids)
        return cls((lambda param_id, _path: int(param_id) in wanted,), (), f"{len(wanted)} ids")

    @classmethod
    def module(cls, module: Module) -> ParamGroup:
        """Take the params and running states of a module, by their ids."""
        return cls.ids(leaf.param.id for leaf in walk(module))

    @classmethod
    def path(cls, path: str) -> ParamGroup:
        """Take the param of exactly this path."""
        return cls.paths([path])

    @classmethod
    def paths(cls, paths: Iterable[str]) -> ParamGroup:
        """Take the params of exactly these paths."""
        wanted = frozenset(paths)
        return cls((lambda _id, path: path in wanted,), (), f"paths {sorted(wanted)}")

    @classmethod
    def predicate(cls, part: str) -> ParamGroup:
        """Take the params whose path contains `part`."""
        return cls.predicates([part])

    @classmethod
    def predicates(cls, parts: Iterable[str]) -> ParamGroup:
        """Take the params whose path contains all of `parts`; no parts take everything."""
        return _by_path([_contains(part) for part in parts], all, "contains all of")

    @classmethod
    def any_predicates(cls, parts: Iterable[str]) -> ParamGroup:
        """Take the params whose path contains one of `parts`; no parts take everything."""
        return _by_path([_contains(part) for part in parts], any, "contains any of")

    @classmethod
    def regex(cls, pattern: str) -> ParamGroup:
        """Take the params in whose path `pattern` is found, anywhere. Raises ValueError."""
        return cls.regexes([pattern])

    @classmethod
    def regexes(cls, patterns: Iterable[str]) -> ParamGroup:
        """Take the params in whose path all `patterns` are found; none take everything.

        Raises:
            ValueError: a pattern is not valid.
        """
        return _by_path([_finds(pattern) for pattern in patterns], all, "matches all of")

    @classmethod
    def any_regexes(cls, patterns: Iterable[str]) -> ParamGroup:
        """Take the params in whose path one of `patterns` is found; none take everything.

        Raises:
            ValueError: a pattern is not valid.
        """
        return _by_path([_finds(pattern) for pattern in patterns], any, "matches any of")

    def fuse(self, other: ParamGroup) -> ParamGroup:
        """Take what either group's matchers take. Both groups' exclusions are dropped (R23)."""
        return ParamGroup(self._matchers + other._matchers, (), f"{self._text} or {other._text}")

    def exclude(self, other: ParamGroup) -> ParamGroup:
        """Take no longer what the matchers of `other` take; its own exclusions play no role."""
        return ParamGroup(
            self._matchers,
            self._exclusions + other._matchers,
            f"{self._text} except {other._text}",
        )

    def matches(self, param_id: int, path: str | None) -> bool:
        """Whether the param of this id and path belongs to the group."""
        return any(match(param_id, path) for match in self._matchers) and not any(
            match(param_id, path) for match in self._exclusions
        )

    def __repr__(self) -> str:
        return f"<ParamGroup {self._text}>"


def _by_path(
    tests: list[tuple[str, Callable[[str], bool]]],
    combine: Callable[[Iterable[bool]], bool],
    words: str,
) -> ParamGroup:
    def match(_id: int, path: str | None) -> bool:
        return path is not None and (not tests or combine(test(path) for _, test in tests))

    return ParamGroup((match,), (), f"{words} {[text for text, _ in tests]}")


def _contains(part: str) -> tuple[str, Callable[[str], bool]]:
    return part, lambda path: part in path


def _finds(pattern: str) -> tuple[str, Callable[[str], bool]]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    return pattern, lambda path: compiled.search(path) is not None
