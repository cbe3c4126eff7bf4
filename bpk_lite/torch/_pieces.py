"""What a torch module's tensors are called in Burn, and in which layout they lie there (S9, S10).

A fused weight of torch is several params in Burn. So the unit here is the *piece*: some rows of a
torch tensor, or all, transposed or not, and the path that Burn has for them. A piece is a view, of
the tensor itself or of anything of the same shape, such as the moments of an optimizer.

Modules that are not in the table keep their names and layouts. For a class of your own that is what
a Burn struct with the same fields has; for one of torch's it is a guess, which `ModuleLayout.plain`
names and a `LayoutWarning` tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import nn

from bpk_lite.torch._rules import CLASSES, Cut, Rule, rule_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LayoutWarning", "ModuleLayout", "Piece", "burn_class", "layout", "own_pieces"]


class LayoutWarning(UserWarning):
    """Something of torch has no counterpart in Burn and is stored as torch has it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A param of Burn inside a tensor of torch.

    Attributes:
        path: Burn's path.
        name: torch's dotted name of the tensor.
        tensor: the torch parameter or buffer.
        owner: the module that holds it.
        part: which part of it this is; tells pieces of one tensor apart.
        rows: the rows that belong to it, or None for all.
        transposed: whether Burn has them transposed.
        running: a buffer, a running state in Burn: keeps its id on loading (R34).
    """

    path: str
    name: str
    tensor: torch.Tensor
    owner: nn.Module
    part: str
    rows: tuple[int, int] | None
    transposed: bool
    running: bool

    def view(self, of: torch.Tensor) -> torch.Tensor:
        """Return this piece of a tensor of the torch tensor's shape, in Burn's layout. No copy."""
        cut = of.detach()
        if self.rows is not None:
            cut = cut[self.rows[0] : self.rows[1]]
        return cut.t() if self.transposed else cut

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape in Burn."""
        return tuple(self.view(self.tensor).shape)


@dataclass(frozen=True, slots=True)
class ModuleLayout:
    """How a torch module is stored.

    Attributes:
        pieces: what is stored, in traversal order.
        left_out: names of torch tensors that Burn has nothing for and that are not stored, each
            with the reason.
        plain: names of tensors of torch's own modules that are stored under torch's names and in
            its layout, because Burn has no such module, each with the reason.
    """

    pieces: tuple[Piece, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    plain: Mapping[str, str] = field(default_factory=dict)


def layout(module: nn.Module) -> ModuleLayout:
    """Return how `module` is stored: what goes where, and what Burn has no place for.

    Copies and moves nothing.

    Raises:
        ValueError: a parameter without data (lazy, or on the meta device) or of a sparse layout;
            two parameters that would have one path.
    """
    pieces: list[Piece] = []
    left_out: dict[str, str] = {}
    plain: dict[str, str] = {}
    _visit(module, (), (), pieces, left_out, plain)
    seen: dict[str, str] = {}
    for piece in pieces:
        if piece.path in seen:
            raise ValueError(f"{seen[piece.path]} and {piece.name} would both be {piece.path!r}")
        seen[piece.path] = piece.name
    return ModuleLayout(tuple(pieces), left_out, plain)


def _visit(
    module: nn.Module,
    path: tuple[str, ...],
    name: tuple[str, ...],
    pieces: list[Piece],
    left_out: dict[str, str],
    plain: dict[str, str],
) -> None:
    rule = rule_of(module)
    reason = rule if isinstance(rule, str) else ""
    known = Rule() if isinstance(rule, str) else rule
    cuts = {cut.attribute: cut for cut in known.cuts}
    own = dict(_own(module))
    for attribute in own:
        dotted = ".".join((*name, attribute))
        if attribute in known.left_out:
            left_out[dotted] = known.left_out[attribute]
        elif attribute not in cuts and (reason or known.cuts):
            plain[dotted] = reason or f"Burn's {type(module).__name__} has no such field"
    stored = [cut for cut in known.cuts if cut.attribute in own]
    stored += [
        Cut(attribute, attribute)
        for attribute in own
        if attribute not in cuts and attribute not in known.left_out
    ]
    for cut in stored:
        tensor, running = own[cut.attribute]
        dotted = ".".join((*name, cut.attribute))
        _check(tensor, dotted)
        pieces.append(
            Piece(
                path=".".join((*path, cut.path)),
                name=dotted,
                tensor=tensor,
                owner=module,
                part=_part(cut, running),
                rows=cut.rows,
                transposed=cut.transposed,
                running=running,
            )
        )
    if type(module).get_extra_state is not nn.Module.get_extra_state:
        left_out[".".join((*name, "_extra_state"))] = "it is no tensor"
    for child_name, child in module.named_children():
        component = known.children.get(child_name, child_name)
        _visit(child, (*path, component), (*name, child_name), pieces, left_out, plain)


def own_pieces(module: nn.Module) -> tuple[Piece, ...]:
    """Return what `module.state_dict()` has: every tensor under torch's name, as it lies there."""
    found: list[Piece] = []
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for attribute, (tensor, running) in _own(owner):
            name = f"{prefix}.{attribute}" if prefix else attribute
            _check(tensor, name)
            part = attribute if running else ""
            found.append(Piece(name, name, tensor, owner, part, None, False, running))
    return tuple(found)


def burn_class(module: nn.Module) -> str:
    """Return what Burn calls the type of a module in a container path (S9)."""
    if isinstance(module, (nn.Sequential, nn.ModuleList)):
        return "Vec"
    for name, classes in CLASSES.items():
        if isinstance(module, classes):
            bidirectional = getattr(module, "bidirectional", False)
            return f"Struct:Bi{name}" if bidirectional else f"Struct:{name}"
    return f"Struct:{type(module).__name__}"


def _part(cut: Cut, running: bool) -> str:
    """Name a piece within what its id is kept under: its tensor, or the module of a buffer."""
    if running:
        return cut.attribute
    return cut.path if cut.rows is not None else "transposed" if cut.transposed else ""


def _own(module: nn.Module) -> Iterator[tuple[str, tuple[torch.Tensor, bool]]]:
    """Yield the module's own parameters and persistent buffers, and whether each is a buffer."""
    for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
        yield name, (parameter, False)
    passing = module._non_persistent_buffers_set
    for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False):
        if name not in passing:
            yield name, (buffer, True)


def _check(tensor: torch.Tensor, name: str) -> None:
    if torch.nn.parameter.is_lazy(tensor):
        raise ValueError(f"{name} has no shape yet: run the module once")
    if tensor.is_meta:
        raise ValueError(f"{name} is on the meta device and has no data; see Module.to_empty")
    if tensor.layout != torch.strided:
        raise ValueError(f"{name} is {tensor.layout}; make it dense first")
