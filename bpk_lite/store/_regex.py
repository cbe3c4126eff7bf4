r"""Patterns and replacements with Rust's meaning, on Python's `re` (S158, S161, S244).

Three things are translated exactly: ``$`` matches only at the very end, ``\z`` and ``(?<name>…)``
are known, and an empty match right behind a match is not replaced. Replacements are Rust's: ``$1``,
``${name}``, ``$$``. What only Rust's dialect has beyond that (``\p{…}``, set operations in
brackets) is refused as Python refuses it; what only Python has (look-around) is allowed. Rust's
engine never backtracks; a pattern that would do so without end in Python is refused
(`is_ambiguous_loop`, bug G3).
"""

from __future__ import annotations

import re
from functools import lru_cache

from bpk_lite.store._backtracking import is_ambiguous_loop

__all__ = ["compile_pattern", "expand", "replace_all"]

# what stands for one group in a replacement: ${name}, or $ and the longest run of word characters
_REFERENCE = re.compile(r"\$(?:\$|\{([^}]*)\}|([0-9A-Za-z_]+))")


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return `pattern` compiled.

    Raises:
        ValueError: not a regular expression, or one that Python's `re` may try without end.
    """
    translated = _translated(pattern)
    try:
        compiled = re.compile(translated)
        ambiguous = is_ambiguous_loop(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    if ambiguous:
        raise ValueError(
            f"{pattern!r} repeats a group that can match one text in several ways, which takes "
            "Python's re exponential time; make the ways exclude each other, as ([^.]+\\.)* in "
            "place of (.+\\.)*"
        )
    return compiled


def _translated(pattern: str) -> str:
    r"""Return `pattern` with ``$``, ``\z`` and ``(?<name>`` as Python writes them."""
    multiline = re.search(r"\(\?[a-zA-Z]*m", pattern) is not None
    parts: list[str] = []
    position, in_class = 0, False
    while position < len(pattern):
        char = pattern[position]
        step = pattern[position : position + 2]
        if char == "\\":
            parts.append(r"\Z" if step == r"\z" and not in_class else step)
            position += 2
            continue
        if in_class:
            in_class = char != "]"
        elif char == "[":
            # a ] directly behind [ or [^ is a member, not the end
            opening = re.match(r"\[\^?\]?", pattern[position:])
            assert opening is not None
            parts.append(opening[0])
            position += len(opening[0])
            in_class = True
            continue
        elif char == "$" and not multiline:
            parts.append(r"\Z")
            position += 1
            continue
        elif (
            pattern.startswith("(?<", position) and pattern[position + 3 : position + 4] not in "=!"
        ):
            parts.append("(?P<")
            position += 3
            continue
        parts.append(char)
        position += 1
    return "".join(parts)


def replace_all(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    """Return `text` with every match replaced, as Rust's `replace_all` does.

    An empty match right behind a match is no match, and what does not match empty there is not
    tried again, so ``.*`` replaces a text once, where Python's `sub` replaces twice.
    """
    parts: list[str] = []
    start = end = 0
    last = -1
    while start <= len(text):
        match = pattern.search(text, start)
        if match is None:
            break
        if match.start() == match.end() == last:
            start = last + 1
            continue
        parts += [text[end : match.start()], expand(replacement, match)]
        start = end = last = match.end()
    return "".join(parts) + text[end:]


def expand(replacement: str, match: re.Match[str]) -> str:
    """Return `replacement` with its references filled in (S158).

    A group that does not exist, or took no part in the match, inserts nothing.
    """

    def fill(reference: re.Match[str]) -> str:
        if reference[0] == "$$":
            return "$"
        name = reference[1] if reference[1] is not None else reference[2]
        group: int | str = int(name) if name.isascii() and name.isdigit() else name
        try:
            return match[group] or ""
        except (IndexError, OverflowError):
            return ""

    return _REFERENCE.sub(fill, replacement)
