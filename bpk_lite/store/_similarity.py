"""Jaro similarity (S189). Ours: no library that has the plain form runs in Pyodide."""

from __future__ import annotations

__all__ = ["jaro"]


def jaro(one: str, other: str) -> float:
    """Return how alike two texts are, 0 to 1.

    Characters agree if they are equal and no further apart than half the longer length; m of them
    do, t of these in another order. The result is the mean of m/|one|, m/|other| and (m - t/2)/m.
    """
    if one == other:
        return 1.0
    reach = max(len(one), len(other)) // 2 - 1
    taken = [False] * len(other)
    agreed: list[str] = []
    for position, char in enumerate(one):
        for index in range(max(0, position - reach), min(len(other), position + reach + 1)):
            if not taken[index] and other[index] == char:
                taken[index] = True
                agreed.append(char)
                break
    if not agreed:
        return 0.0
    matched = len(agreed)
    moved = sum(
        a != b
        for a, b in zip(agreed, (c for c, t in zip(other, taken, strict=True) if t), strict=True)
    )
    return (matched / len(one) + matched / len(other) + (matched - moved / 2) / matched) / 3
