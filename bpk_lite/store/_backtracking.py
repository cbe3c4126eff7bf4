"""Tell patterns that Python's `re` may backtrack on without end (bug G3).

Rust's engine takes time linear in the text, Python's tries every way to match. Where a loop can
match one text in two ways, as in ``(a+)+``, the ways double with each round, and a name of thirty
characters hangs the program. So each pattern is looked at before it is used.

The test is exact for what it models (Weber and Seidl's criterion): the pattern becomes its position
automaton, one state for each place that consumes a character, and a loop is ambiguous if a state
can return to itself by two different paths that read the same characters. Characters are stood for
by those that the pattern names and their neighbours. Repetitions with a small bound are no loops.
Time is quadratic in the places of a loop, which are few.
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["is_ambiguous_loop"]

_LOOP = 16  # as many repetitions as this are taken for endless ones
_MANY = 400  # places beyond which a pattern counts as ambiguous without a look
_SAMPLE = frozenset("aA0_ .-/\n\u00e9\u4e2d")
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_LOOP_OF_GROUP = re.compile(r"\)\s*[*+{]")
_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}


def is_ambiguous_loop(pattern: str) -> bool:
    """Whether `pattern`, in Python's syntax, has a loop that matches one text in two ways."""
    if _LOOP_OF_GROUP.search(pattern) is None:
        return False  # single characters are repeated at most, as in most patterns
    parsed = parser.parse(pattern)
    automaton = _Automaton(_alphabet(parsed), bool(parsed.state.flags & re.IGNORECASE))
    try:
        automaton.add(parsed)
    except _TooLarge:
        return True
    return automaton.is_ambiguous()


class _TooLarge(Exception):
    """There are more places than are worth looking at."""


@dataclass(slots=True)
class _Part:
    """What a piece of the pattern starts with, ends with, and whether it may be empty."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    empty: bool = True


class _Automaton:
    """The places of a pattern, the characters that each reads, and which may follow which."""

    def __init__(self, alphabet: frozenset[str], fold: bool) -> None:
        self.alphabet = alphabet
        self.fold = fold
        self.reads: list[frozenset[str]] = []
        self.edges: Counter[tuple[int, int]] = Counter()

    def add(self, items: Iterable[Any]) -> _Part:
        """Add a sequence of the parser's items."""
        whole = _Part()
        for operation, argument in items:
            part = self._item(operation, argument)
            self._join(whole.last, part.first)
            whole = _Part(
                whole.first + part.first * whole.empty,
                part.last + whole.last * part.empty,
                whole.empty and part.empty,
            )
        return whole

    def _item(self, operation: Any, argument: Any) -> _Part:
        if operation in _REPEATS:
            return self._repeat(*argument)
        if operation is sre.SUBPATTERN:
            return self.add(argument[3])
        if operation is sre.ATOMIC_GROUP:
            return self.add(argument)
        if operation is sre.BRANCH:
            return self._either(argument[1])
        if operation is sre.GROUPREF_EXISTS:
            return self._either([argument[1], argument[2] or ()])
        if operation in (sre.ASSERT, sre.ASSERT_NOT):
            self.add(argument[1])  # on its own: it consumes nothing
            return _Part()
        if operation in (sre.AT, sre.GROUPREF):
            return _Part()
        if len(self.reads) == _MANY:
            raise _TooLarge
        self.reads.append(frozenset(filter(self._matcher(operation, argument), self.alphabet)))
        place = [len(self.reads) - 1]
        return _Part(place, place, empty=False)

    def _repeat(self, least: int, most: int, body: Any) -> _Part:
        if most >= _LOOP:
            part = self.add(body)
            self._join(part.last, part.first)
            return _Part(part.first, part.last, part.empty or least == 0)
        whole = _Part()
        for turn in range(most):
            part = self.add(body)
            self._join(whole.last, part.first)
            skip = part.empty or turn >= least
            whole = _Part(
                whole.first + part.first * whole.empty,
                part.last + whole.last * skip,
                whole.empty and skip,
            )
        return whole

    def _either(self, branches: Iterable[Any]) -> _Part:
        parts = [self.add(branch) for branch in branches]
        return _Part(
            [place for part in parts for place in part.first],
            [place for part in parts for place in part.last],
            any(part.empty for part in parts),
        )

    def _join(self, ends: Iterable[int], starts: list[int]) -> None:
        self.edges.update((end, start) for end in ends for start in starts)

    def _matcher(self, operation: Any, argument: Any) -> Any:
        """Return a test of one character."""
        if operation is sre.ANY:
            return lambda char: char != "\n"
        if operation is sre.IN:
            negated = argument[0][0] is sre.NEGATE
            tests = [self._matcher(*one) for one in argument[negated:]]
            return lambda char: any(test(char) for test in tests) != negated
        if operation is sre.CATEGORY:
            return re.compile(_CATEGORIES[argument]).match
        if operation is sre.RANGE:
            low, high = argument
            return lambda char: any(low <= ord(one) <= high for one in self._cases(char))
        same = operation is not sre.NOT_LITERAL
        return lambda char: (chr(argument) in self._cases(char)) == same

    def _cases(self, char: str) -> set[str]:
        return {char.lower()[0], char.upper()[0], char} if self.fold else {char}

    def is_ambiguous(self) -> bool:
        """Whether a place returns to itself by two paths that read the same."""
        after: dict[int, list[int]] = {}
        for start, end in self.edges:
            after.setdefault(start, []).append(end)
        reach = {place: _reachable(after, place) for place in after}
        looping = [place for place in after if place in reach[place]]
        if any(
            count > 1 and start in reach.get(end, ()) for (start, end), count in self.edges.items()
        ):
            return True
        # places of one loop reach each other, and so do their pairs: one of each loop will do
        loops = {min(q for q in reach[p] if p in reach.get(q, ())) for p in looping}
        return any(self._meets_itself(after, place) for place in loops)

    def _meets_itself(self, after: dict[int, list[int]], place: int) -> bool:
        """Whether two different places, reached by one text, go on to a common one by one text."""
        overlap = {
            a: {b for b, reads in enumerate(self.reads) if reads & self.reads[a]}
            for a in after.keys() | {b for ends in after.values() for b in ends}
        }
        onward: dict[tuple[int, int], list[tuple[int, int]]] = {}
        pending = [(place, place)]
        while pending:
            pair = pending.pop()
            if pair in onward:
                continue
            seconds = set(after.get(pair[1], ()))
            onward[pair] = [(c, d) for c in after.get(pair[0], ()) for d in overlap[c] & seconds]
            pending += onward[pair]
        back: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for pair, following in onward.items():
            for each in following:
                back.setdefault(each, []).append(pair)
        return any(first != second for first, second in _reachable(back, (place, place)))


def _reachable(after: dict[Any, list[Any]], start: Any) -> set[Any]:
    """Return what can be reached from `start` in one step or more."""
    found: set[Any] = set()
    pending = [start]
    while pending:
        for each in after.get(pending.pop(), ()):
            if each not in found:
                found.add(each)
                pending.append(each)
    return found


def _alphabet(parsed: Any) -> frozenset[str]:
    """Return characters that stand for all: those named, their neighbours and cases, a sample."""
    named: set[int] = set()
    pending: list[Any] = [parsed]
    while pending:
        one = pending.pop()
        if isinstance(one, int):
            named.update((one - 1, one, one + 1))
        elif isinstance(one, (tuple, list, parser.SubPattern)):
            pending.extend(one)
    chars = {chr(code) for code in named if 0 <= code < 0x110000}
    return _SAMPLE | chars | {form[0] for char in chars for form in (char.lower(), char.upper())}
