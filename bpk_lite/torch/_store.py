"""A torch module as stores see it (S9, S10, S36, S174)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from bpk_lite.store import Context
from bpk_lite.torch._ids import adopt_id, id_of
from bpk_lite.torch._module import Tied, check_tied, replace_value, tensor_of
from bpk_lite.torch._pieces import Piece, burn_class, layout, own_pieces
from bpk_lite.torch._transfer import dtype_of, fill, torch_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bpk_lite.pack import DType, ParamId, Tensor
    from bpk_lite.store import Adapter

__all__ = ["StoreTarget"]

_log = logging.getLogger("bpk_lite")


class StoreTarget:
    """Gives a torch module to a store. Stores make one themselves; make one to choose `tied`.

    Where the other side has PyTorch's layout (a PyTorch checkpoint, an adapter to or from it), the
    params have torch's names and shapes and nothing is converted. Else they have Burn's, see
    `layout`.

    Args:
        module: any module.
        tied: what becomes of a parameter that occurs at several paths, as in `into_record`. When
            one is filled, the first path that the file has decides, and one is enough.
    """

    own_indices = True

    def __init__(self, module: nn.Module, *, tied: Tied = "copy") -> None:
        self._module = module
        self._tied: Tied = check_tied(tied)
        self._form: Literal["burn", "torch"] = "burn"

    def meeting(self, adapter: Adapter) -> tuple[StoreTarget, Adapter]:
        """Return the target in the other side's layout, and what is left to adapt."""
        rest = adapter.without_layout()
        if rest is adapter:
            return self, adapter
        other = StoreTarget(self._module, tied=self._tied)
        other._form = "torch"
        return other, rest

    def slots(self, *, skip_enum_variants: bool = False) -> Iterator[_Slot]:
        """Yield the params in traversal order. torch has no enums to leave out.

        Raises:
            ValueError: a parameter without data; a tied one with ``tied="error"``.
            TypeError: an element type that Burn lacks.
        """
        burn = self._form == "burn"
        pieces = layout(self._module).pieces if burn else own_pieces(self._module)
        first: dict[object, Piece] = {}
        done: set[object] = set()
        for piece in pieces:
            shared = (id(piece.tensor), piece.rows)
            earlier = first.setdefault(shared, piece)
            if earlier is not piece:
                if self._tied == "error":
                    raise ValueError(f"{piece.name} and {earlier.name} are one parameter")
                if self._tied == "first":
                    continue
                _log.info("%s and %s are one parameter", piece.path, earlier.path)
            yield _Slot(piece, Context(self._containers(piece)), shared, done)

    def _containers(self, piece: Piece) -> tuple[str, ...]:
        """Return what Burn calls the owners of each level of a path."""
        found = [burn_class(self._module)]
        owner = self._module
        for component in piece.name.split(".")[:-1]:
            owner = getattr(owner, component)
            found.append(burn_class(owner))
        inner = len(piece.path.split(".")) - len(found)
        if inner > 0:  # a part of a fused weight belongs to a linear layer in Burn
            found += ["Struct:GateController"] * (inner - 1) + ["Struct:Linear"]
        return tuple(found)


class _Slot:
    """A piece of a torch tensor."""

    __slots__ = ("_done", "_piece", "context", "shared")

    def __init__(self, piece: Piece, context: Context, shared: object, done: set[object]) -> None:
        self._piece = piece
        self.context = context
        self.shared = shared
        self._done = done

    @property
    def path(self) -> str:
        return self._piece.path

    @property
    def optional(self) -> bool:
        return self._piece.name.rpartition(".")[2] == "num_batches_tracked"

    @property
    def kind(self) -> str:
        return self.dtype.kind

    @property
    def dtype(self) -> DType:
        return dtype_of(self._piece.tensor, self._piece.name)

    @property
    def saved_shape(self) -> tuple[int, ...]:
        return self._piece.shape

    @property
    def param_id(self) -> ParamId:
        return id_of(self._piece)

    def tensor(self) -> Tensor:
        return tensor_of(self._piece, self._piece.tensor.detach())

    def prepare(self, tensor: Tensor) -> Callable[[], None]:
        if self.shared in self._done:
            return lambda: None  # the first path decides
        self._done.add(self.shared)
        piece, held = self._piece, self._piece.tensor.detach()
        whole = piece.rows is None
        # a part of a fused weight gets the dtype that the weight has
        dtype = torch_dtype(tensor.dtype) if whole else held.dtype
        fresh = torch.empty_like(held if whole else piece.view(held), dtype=dtype)
        fill(piece.view(fresh) if whole else fresh, tensor)

        def change() -> None:
            if whole:
                replace_value(piece.tensor, fresh)
            else:
                piece.view(piece.tensor).copy_(fresh)
            if tensor.param_id is not None:
                adopt_id(piece, tensor.param_id)

        return change
