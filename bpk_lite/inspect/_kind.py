"""Say which kind of record a pack holds: no file does, but its names tell (R1, R51, R62)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["record_kind"]

# leaves of an optimizer's state behind the param id, tensors and scalars -> which optimizers
_OPTIMIZERS: tuple[tuple[str, frozenset[str]], ...] = (
    ("Adam or AdamW with AMSGrad", frozenset({
        "momentum.time", "momentum.moment_1", "momentum.moment_2", "momentum.max_moment_2"})),
    ("Adam or AdamW", frozenset({"momentum.time", "momentum.moment_1", "momentum.moment_2"})),
    ("Adan", frozenset({
        "momentum.time", "momentum.exp_avg", "momentum.exp_avg_sq", "momentum.exp_avg_diff",
        "momentum.neg_pre_grad"})),
    ("LAMB", frozenset({"time", "moment_1", "moment_2"})),
    ("Adafactor", frozenset({"time", "second_moment"})),
    ("AdaGrad", frozenset({"lr_decay.time", "lr_decay.sum"})),
    ("RMSProp", frozenset({"square_avg.square_avg", "centered.avg"})),
    ("SGD with momentum, or Muon", frozenset({"momentum.velocity"})),
    ("Lion", frozenset({"momentum"})),
)  # fmt: skip
_LBFGS = frozenset({"g_iter", "t", "history_s.len", "history_y.len"})
_SCHEDULERS = {
    "remaining_iters": "linear",
    "current_iter": "cosine",
    "previous_lr": "exponential",
    "iter_idx": "step",
    "step": "noam, or sequential",
}


def record_kind(
    names: Iterable[str], scalars: Iterable[str], metadata: Mapping[str, str], ids: int
) -> str:
    """Return what a pack is, in words.

    Args:
        names: of its tensors.
        scalars: names of its scalars.
        metadata: its metadata.
        ids: how many of the tensors have a parameter id.
    """
    tensors, numbers = set(names), set(scalars)
    if numbers >= _LBFGS:
        return "optimizer record: L-BFGS"
    if any(_leaf(name) == "__rank" for name in numbers):
        return f"optimizer record: {_optimizer(tensors, numbers)}"
    if numbers and not tensors:
        kinds = {_SCHEDULERS.get(name.rpartition(".")[2]) for name in numbers}
        if None not in kinds:
            return f"learning-rate scheduler record: {', '.join(sorted(filter(None, kinds)))}"
    if metadata.get("format") == "burnpack":
        return f"weights that {metadata.get('producer', 'a program')}'s store saved"
    if tensors and ids == len(tensors) and not numbers:
        return "module record"
    if not tensors and not numbers:
        return "empty: what a module without params and a constant learning rate give"
    return "tensors of no record" if tensors else "scalars of no record"


def _optimizer(tensors: set[str], numbers: set[str]) -> str:
    """Name the kinds; groups may have several."""
    by_param: dict[str, set[str]] = {}
    for name in tensors | numbers:
        by_param.setdefault(name.partition(".")[0], set()).add(_leaf(name) or "")
    kinds: list[str] = []
    for leaves in by_param.values():
        rest = leaves - {"__rank"}
        kind = next((name for name, needs in _OPTIMIZERS if needs <= rest), None)
        kind = kind or ("unknown" if rest else "SGD without momentum")
        if kind not in kinds:
            kinds.append(kind)
    return "; ".join(sorted(kinds))


def _leaf(name: str) -> str | None:
    """Return what stands behind a param id."""
    number, dot, leaf = name.partition(".")
    return leaf if dot and number.isascii() and number.isdigit() else None
