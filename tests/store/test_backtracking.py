"""Patterns that Python's `re` would try without end are refused before they meet a name (bug G3)."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite.store import KeyRemapper, PathFilter
from bpk_lite.store._backtracking import is_ambiguous_loop

ENDLESS = [
    r"(a+)+$",
    r"(a*)*b",
    r"(?:a|ab|b)*c",
    r"(a?b?)*c",
    r"(.+\.)*weight",
    r"(?:a{1,20})+b",
    r"(?:a{1,3})*b",
    r"(\d+|\w+)+x",
    r"(?i)(?:A1|a\d)*b",
    r"(?=(a+)+b)",
    r"(x+x+)+y",
    r"(a)?(?(1)(?:b+)+|c)",
]
FINE = [
    r"^layers\.(\d+)\.(.*)$",
    r"([^.]+\.)*weight",
    r"(?:\w+\.)*\w+$",
    r"(\d+|[a-z]+)(_(\d+|[a-z]+))*",
    r"(?:ab|cd)+",
    r"(a+){1,3}",
    r".*.*x",
    r"(?i)(?:A1|b\d)*",
    "x" * 500,
    "(" + "|".join(f"{chr(97 + i % 26)}{i}_" for i in range(100)) + ")*x",
]


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_loop_that_matches_one_text_in_two_ways_is_refused(pattern):
    """The error names the pattern and says how to write it otherwise."""
    with pytest.raises(ValueError, match="exponential time") as caught:
        KeyRemapper([(pattern, "x")])
    assert repr(pattern) in str(caught.value)
    with pytest.raises(ValueError, match="exponential time"):
        PathFilter(regex=[pattern])


@pytest.mark.parametrize("pattern", FINE, ids=lambda one: one[:20])
def test_loops_of_exclusive_parts_are_used(pattern):
    """Nesting alone is no fault."""
    assert not is_ambiguous_loop(pattern)
    KeyRemapper([(pattern, "x")]).rename("a" * 200)


@pytest.mark.desktop
@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(?:a|ab|b)*c", r"(?:a{1,3})*b", r"(a?b?)*c"])
def test_what_is_refused_would_have_hung(pattern):
    """Python itself does not finish such a pattern on a name of 60 characters within a second."""
    code = f"import re; re.search({'^' + pattern!r}, 'ab' * 30 + '!', 0)"
    if "ab" not in pattern and "b?" not in pattern:
        code = f"import re; re.search({'^' + pattern!r}, 'a' * 60 + '!', 0)"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", code], timeout=1, check=False)


BODY = st.text("ab", min_size=1, max_size=2)


@given(st.lists(BODY, min_size=1, max_size=4), st.sampled_from(["*", "+", "{2,}", "*?"]))
def test_the_verdict_on_alternations_is_unique_decodability(words, loop):
    """A loop over words is refused exactly if some text splits into the words in two ways."""
    pattern = f"(?:{'|'.join(words)}){loop}c"
    distinct = sorted(set(words))
    same = len(distinct) < len(words) and len(words[0]) > 1
    expected = _splits_twice(distinct)
    if len(set(map(len, words))) == 1 and len(words[0]) == 1:
        expected = False  # a set of characters: the parser makes one place of it
    elif len(distinct) < len(words) or same:
        return  # doubled words: the parser may or may not join them
    assert expected == is_ambiguous_loop(pattern)


def _splits_twice(words):
    """Sardinas and Patterson's test."""
    rest = {b[len(a) :] for a in words for b in words if a != b and b.startswith(a)}
    seen = set()
    while rest - seen:
        if rest & set(words):
            return True
        seen |= rest
        rest = {b[len(a) :] for a in rest for b in words if b.startswith(a)} | {
            a[len(b) :] for a in rest for b in words if a.startswith(b)
        }
        if "" in rest:
            return True
    return False


def test_a_pattern_too_large_to_be_looked_at_is_refused():
    """Repetitions within repetitions multiply; the look at them stays short."""
    assert is_ambiguous_loop("(?:(?:(?:ab?){9}){9}){9}(?:cd)*")


def test_every_pattern_that_is_accepted_still_compiles():
    """The look is at Python's own parse, which a release may change: it must not fail silently."""
    assert is_ambiguous_loop("(a+)+")
    assert re.compile("(a+)+")
