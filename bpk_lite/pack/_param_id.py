"""The identity of a parameter: a u64 that survives saving and loading (R7 to R10)."""

from __future__ import annotations

from typing import Self

__all__ = ["ParamId"]

_ALPHABET = "0123456789abcdefghijklmnopqrstuv"
_VALUES = {char: value for value, char in enumerate(_ALPHABET)}
# base 32 writes n bytes in ceil(8n / 5) characters: the lengths modulo 8 that n = 0..4 can give
_LENGTHS = frozenset({0, 2, 4, 5, 7})


class ParamId(int):
    """An id of 0 to 2^64 - 1. Compares, hashes and formats as that integer.

    Burn shows ids in a base-32 form, `text` here, and stores them as integers.

    Raises:
        ValueError: the number does not fit in 64 bits.
    """

    __slots__ = ()

    def __new__(cls, value: int) -> Self:
        self = super().__new__(cls, value)
        if not 0 <= self < 1 << 64:
            raise ValueError(f"a parameter id is 0 to 2^64 - 1, not {int(self)}")
        return self

    @classmethod
    def random(cls) -> Self:
        """Return a new id of 64 random bits (R7)."""
        from secrets import randbits  # here, because it pulls in hashing that opening never needs

        return cls(randbits(64))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the id that a base-32 `text` names, in either case (R10).

        Texts of fewer than 8 bytes, as old ids have, are extended with zeros.

        Raises:
            ValueError: not base 32, of an impossible length, or more than 8 bytes. UUIDs, which
                Burn hashes in a way that depends on the processor, are refused too.
        """
        bits = 0
        for char in text.lower():
            if char not in _VALUES:
                raise ValueError(
                    f"{text!r} is not a parameter id: {char!r} is not one of {_ALPHABET}"
                )
            bits = bits << 5 | _VALUES[char]
        size = len(text) * 5 // 8
        spare = len(text) * 5 - size * 8
        if len(text) % 8 not in _LENGTHS or size > 8 or bits & ((1 << spare) - 1):
            raise ValueError(
                f"{text!r} is not a parameter id: expected up to 13 characters of base 32 that end "
                "on a whole byte"
            )
        return cls(int.from_bytes((bits >> spare).to_bytes(size, "big"), "little"))

    @property
    def text(self) -> str:
        """The base-32 form, 13 characters, of the little-endian bytes (R9)."""
        bits = int.from_bytes(int(self).to_bytes(8, "little"), "big") << 1
        return "".join(_ALPHABET[bits >> shift & 31] for shift in range(60, -1, -5))

    def __repr__(self) -> str:
        return f"ParamId({int(self)})"

    def __str__(self) -> str:
        return int.__repr__(self)
