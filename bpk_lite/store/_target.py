"""What a store fills and reads: the params of a module, in Burn's form, with where they belong.

A target yields slots in traversal order. Modules of `bpk_lite.nn` are targets by themselves;
modules of PyTorch are made ones by `bpk_lite.torch`, which shows them in Burn's names and layout.
Nothing here knows of other frameworks (S9, S10).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from bpk_lite._door import torch_bridge
from bpk_lite.nn import Module, Param, Variant
from bpk_lite.nn._walk import children as nn_children
from bpk_lite.store._adapters import Context
from bpk_lite.store._errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bpk_lite.pack import DType, ParamId, Tensor
    from bpk_lite.store._adapters import Adapter

__all__ = ["Slot", "Target", "target_of"]


class Slot(Protocol):
    """One param of a target."""

    @property
    def path(self) -> str:
        """Its name."""
        ...

    @property
    def context(self) -> Context:
        """Where in the module it belongs."""
        ...

    @property
    def optional(self) -> bool:
        """Whether a file without it is complete."""
        ...

    @property
    def shared(self) -> object:
        """Equal for params that are one tensor, or None; a file needs one of them."""
        ...

    @property
    def kind(self) -> str:
        """``"float"``, ``"int"`` or ``"bool"``."""
        ...

    @property
    def dtype(self) -> DType:
        """What it holds now."""
        ...

    @property
    def saved_shape(self) -> tuple[int, ...]:
        """Its shape in a file (S8)."""
        ...

    @property
    def param_id(self) -> ParamId:
        """Its id."""
        ...

    def tensor(self) -> Tensor:
        """Return what it holds, in save form, without copying."""
        ...

    def prepare(self, tensor: Tensor) -> Callable[[], None]:
        """Read a tensor of its kind and saved shape; the result makes the param take it."""
        ...


class Target(Protocol):
    """A module as a store sees it.

    Attributes:
        own_indices: whether its lists have the indices of the file, gaps included, so that index
            mapping would move weights (S174).
    """

    own_indices: bool

    def meeting(self, adapter: Adapter) -> tuple[Target, Adapter]:
        """Return the target in the layout of the other side, and what is left to adapt (S10)."""
        ...

    def slots(self, *, skip_enum_variants: bool) -> Iterator[Slot]:
        """Yield the params in traversal order."""
        ...


def target_of(module: Any) -> Target:
    """Return `module` as a target.

    Raises:
        StoreError: neither a module of `bpk_lite.nn` nor one of PyTorch.
    """
    if isinstance(module, (Module, Param, list, tuple)):
        return _NnTarget(module)
    if hasattr(module, "meeting") and hasattr(module, "slots"):
        return module  # type: ignore[no-any-return]
    if hasattr(module, "named_parameters"):
        return torch_bridge().StoreTarget(module)  # type: ignore[no-any-return]
    raise StoreError(f"a {type(module).__name__} is no module of bpk_lite.nn or PyTorch")


class _NnSlot:
    __slots__ = ("_param", "context", "path")

    optional = False
    shared = None

    def __init__(self, path: str, context: Context, param: Param) -> None:
        self.path = path
        self.context = context
        self._param = param

    @property
    def kind(self) -> str:
        return self._param.kind

    @property
    def dtype(self) -> DType:
        return self._param.dtype

    @property
    def saved_shape(self) -> tuple[int, ...]:
        return self._param.saved_shape

    @property
    def param_id(self) -> ParamId:
        return self._param.id

    def tensor(self) -> Tensor:
        return self._param.tensor(self.path)

    def prepare(self, tensor: Tensor) -> Callable[[], None]:
        return partial(self._param.load, tensor)


class _NnTarget:
    own_indices = False

    def __init__(self, module: Any) -> None:
        self._module = module

    def meeting(self, adapter: Adapter) -> tuple[Target, Adapter]:
        return self, adapter

    def slots(self, *, skip_enum_variants: bool) -> Iterator[_NnSlot]:
        yield from _slots(self._module, (), (), skip_enum_variants)


def _slots(
    node: Any, path: tuple[str, ...], containers: tuple[str, ...], skip: bool
) -> Iterator[_NnSlot]:
    """Yield the slots below `node`; each level names what owns it (S2, S3, S6)."""
    if isinstance(node, Param):
        yield _NnSlot(".".join(path), Context(containers), node)
    owner = _owner(node)
    for component, value in nn_children(node):
        below = path if skip and isinstance(node, Variant) else (*path, component)
        yield from _slots(value, below, (*containers, owner), skip)


def _owner(node: Any) -> str:
    if isinstance(node, Variant):
        return f"Enum:{type(node).__name__}"
    if isinstance(node, Module):
        return f"Struct:{type(node).__name__}"
    if isinstance(node, Param):
        return "Struct:Lora"
    return "Tuple" if isinstance(node, tuple) else "Vec"
