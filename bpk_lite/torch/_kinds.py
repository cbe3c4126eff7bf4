"""The optimizers that torch and Burn share, and what each calls its state (R51).

==========  ==================================================================================
torch       Burn, and what differs
==========  ==================================================================================
SGD         SGD, with or without momentum
Adam        Adam
AdamW       AdamW
Adagrad     AdaGrad; torch has state before the first step, Burn has none
RMSprop     RMSProp; ``centered.avg`` is computed, torch's step count is not in Burn
Muon        Muon with a dampening of 0: torch keeps (1 - momentum) times Burn's velocity
Adafactor   Adafactor; rows and columns change places with the layout of a linear weight
==========  ==================================================================================

Hyperparameters are in no record (R50) and have other defaults in Burn: epsilon 1e-5, dampening 0.1,
RMSProp momentum 0.9. What a step makes of equal state and hyperparameters agrees up to rounding,
except for Muon, whose iterations torch computes in bfloat16, and which scales the rate of a
non-square weight by its shape, which in Burn is the transposed one; and Adafactor's epsilon 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from bpk_lite.pack import RecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Kind", "Leaf", "kind_of"]

State: TypeAlias = "dict[str, Any]"
Group: TypeAlias = "Mapping[str, Any]"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor of Burn's state.

    Attributes:
        name: behind the param's id.
        key: of torch's state that holds it, or None for one that is computed.
        required: whether Burn cannot do without it (R41).
        make: torch's state and group to the values, if they are not those of `key` as they are.
        take: the inverse in place, from the stored values and the group.
        start: whether torch needs the tensor though the record has none; it starts with zeros.
    """

    name: str
    key: str | None
    required: bool = True
    make: Callable[[State, Group], torch.Tensor] | None = None
    take: Callable[[torch.Tensor, Group], None] | None = None
    start: Callable[[Group], bool] | None = None

    def has(self, state: State) -> bool:
        """Whether torch's state has it."""
        return self.key is None or state.get(self.key) is not None


@dataclass(frozen=True, slots=True)
class Kind:
    """An optimizer.

    Attributes:
        leaves: its tensors, in Burn's order.
        time: Burn's scalar that counts steps, or None.
        counts: whether torch's state has a ``step``.
        factored: whether the state has the shapes of Adafactor.
    """

    leaves: tuple[Leaf, ...]
    time: str | None = None
    counts: bool = True
    factored: bool = False


def kind_of(optimizer: torch.optim.Optimizer) -> Kind:
    """Return the kind of an optimizer.

    Raises:
        RecordError: Burn has no such optimizer, or not with these options.
    """
    for names, kind in _KINDS.items():
        cls = getattr(torch.optim, names, None)
        if cls is not None and isinstance(optimizer, cls):
            for group in optimizer.param_groups:
                if group.get("maximize"):
                    raise RecordError(
                        f"{names} with maximize=True has no counterpart in Burn: its state is that "
                        "of the negated gradients"
                    )
            return kind
    raise RecordError(
        f"Burn has no counterpart of {type(optimizer).__name__}; it shares with torch "
        f"{', '.join(_KINDS)} and LBFGS"
    )


def _variance(state: State, group: Group) -> torch.Tensor:
    """Return what Burn's RMSProp divides by, under the root (R97's table)."""
    square: torch.Tensor = state["square_avg"]
    if not group["centered"]:
        return square
    mean: torch.Tensor = state["grad_avg"]
    return square - mean * mean


def _velocity(state: State, group: Group) -> torch.Tensor:
    velocity: torch.Tensor = state["momentum_buffer"] / (1 - group["momentum"])
    return velocity


def _buffer(velocity: torch.Tensor, group: Group) -> None:
    velocity.mul_(1 - group["momentum"])


_ADAM = Kind(
    (
        Leaf("momentum.moment_1", "exp_avg"),
        Leaf("momentum.moment_2", "exp_avg_sq"),
        Leaf(
            "momentum.max_moment_2",
            "max_exp_avg_sq",
            required=False,
            start=lambda group: bool(group["amsgrad"]),
        ),
    ),
    "momentum.time",
)

_KINDS: dict[str, Kind] = {
    "SGD": Kind((Leaf("momentum.velocity", "momentum_buffer", required=False),), counts=False),
    "Adam": _ADAM,
    "AdamW": _ADAM,
    "Adagrad": Kind((Leaf("lr_decay.sum", "sum"),), "lr_decay.time"),
    "RMSprop": Kind(
        (
            Leaf("square_avg.square_avg", "square_avg"),
            Leaf(
                "centered.grad_avg",
                "grad_avg",
                required=False,
                start=lambda group: bool(group["centered"]),
            ),
            Leaf("centered.avg", None, make=_variance),
            Leaf(
                "momentum.buf",
                "momentum_buffer",
                required=False,
                start=lambda group: bool(group["momentum"] > 0),
            ),
        ),
    ),
    "Muon": Kind(
        (Leaf("momentum.velocity", "momentum_buffer", make=_velocity, take=_buffer),), counts=False
    ),
    "Adafactor": Kind(
        (
            Leaf("second_moment", None),
            Leaf("column_second_moment", None, required=False),
        ),
        "time",
        factored=True,
    ),
}
