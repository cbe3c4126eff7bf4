"""Which module a group of tensors belongs to, where there is no module to ask.

A file has names and shapes only. From them follows what PyTorch's and Burn's layouts differ in:

======================================  ===========================================
of one prefix                           taken for
======================================  ===========================================
``weight`` [n, m] with a bias, or not   Linear
``weight`` [n, m], no bias, a name
such as ``embed`` or ``wte``            Embedding
``weight`` of three to five dimensions  Conv1d to Conv3d
``weight`` [n], ``running_mean``        BatchNorm
``weight`` [n], ``bias`` [n]            LayerNorm (a GroupNorm has the same layout)
``weight`` [n]                          RmsNorm
``weight`` [1], or ``prelu``            PRelu
``gamma``, ``alpha``                    the same norms, and PRelu
======================================  ===========================================

A wrong guess is corrected by a pattern.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bpk_lite.store._regex import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpk_lite.pack import Tensor

__all__ = ["MODULE_TYPES", "module_types", "prefix_of"]

MODULE_TYPES = (
    "Linear", "Embedding", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
    "ConvTranspose3d", "BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RmsNorm", "PRelu",
    "Other",
)  # fmt: skip
_EMBEDDING = compile_pattern(r"(?i)(embed|(^|[._])(wte|wpe|tokens?|emb)([._]|$))")
_PRELU = compile_pattern(r"(?i)p_?relu")


def prefix_of(name: str) -> str:
    """Return what stands before the last segment of a name."""
    return name.rpartition(".")[0]


def module_types(
    tensors: Iterable[Tensor], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the type of module of each prefix; ``"Other"`` where nothing is known.

    Args:
        tensors: all tensors of the file.
        given: patterns, searched in the prefix, and types; the first that is found counts.

    Raises:
        ValueError: a pattern that is none, or a type that is not among `MODULE_TYPES`.
    """
    chosen = [(compile_pattern(pattern), kind) for pattern, kind in (given or {}).items()]
    for _, kind in chosen:
        if kind not in MODULE_TYPES:
            raise ValueError(f"{kind!r} is not among {', '.join(MODULE_TYPES)}")
    groups: dict[str, dict[str, tuple[int, ...]]] = defaultdict(dict)
    for tensor in tensors:
        prefix, _, last = tensor.name.rpartition(".")
        groups[prefix][last] = tensor.shape
    return {
        prefix: next((kind for pattern, kind in chosen if pattern.search(prefix)), None)
        or _guessed(prefix, shapes)
        for prefix, shapes in groups.items()
    }


def _guessed(prefix: str, shapes: Mapping[str, tuple[int, ...]]) -> str:
    if "alpha" in shapes and len(shapes["alpha"]) == 1:
        return "PRelu"
    if len(shapes.get("gamma", ())) == 1:
        if "running_mean" in shapes:
            return "BatchNorm"
        return "LayerNorm" if "beta" in shapes else "RmsNorm"
    weight, bias = shapes.get("weight", ()), shapes.get("bias")
    if len(weight) == 1:
        if "running_mean" in shapes:
            return "BatchNorm"
        if bias == weight:
            return "LayerNorm"
        return "PRelu" if weight == (1,) or _PRELU.search(prefix) else "RmsNorm"
    if len(weight) == 2:
        return "Embedding" if bias is None and _EMBEDDING.search(prefix) else "Linear"
    return {3: "Conv1d", 4: "Conv2d", 5: "Conv3d"}.get(len(weight), "Other")
