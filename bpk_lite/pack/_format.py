"""Text for people: sizes and names, in reprs, errors, tables and trees alike."""

from __future__ import annotations

__all__ = ["human_bytes", "safe_text"]


def human_bytes(count: int) -> str:
    """Return `count` in binary units with three digits at most: ``"392 KiB"``, ``"1.25 GiB"``."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    digits = 0 if unit == "B" or size >= 100 else 1 if size >= 10 else 2
    text = f"{size:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


def safe_text(text: str) -> str:
    r"""Return `text` with everything that a terminal would not print as itself escaped.

    Control characters, line breaks and direction overrides become ``\n``, ``\x1b``, ``\u202e``.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
