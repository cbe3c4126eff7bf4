"""`Module`, the base of everything that has params, and `Variant`, the enum among modules.

A module is an ordinary class: fields are assigned in ``__init__`` (no ``super().__init__()``), the
base class keeps no books, and nothing is registered. What belongs to a module is found by looking
at its fields when somebody asks (`bpk_lite.nn._walk`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from bpk_lite.nn._load import LoadReport, load_tensors
from bpk_lite.nn._tree import draw
from bpk_lite.nn._walk import named_params, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpk_lite.nn._param import Param
    from bpk_lite.pack import Tensor

__all__ = ["Module", "Variant"]


class Module:
    """The base class of layers and models.

    Fields that are modules, params, or lists, tuples and dicts of them are part of the module, in
    the order of their first assignment; any other field is allowed and plays no role (R14 to R17).

    Attributes:
        field_names: for fields that Burn calls otherwise, the component in the path (a field that
            must be ``"r#type"``, or a Python keyword); None leaves a field out.
    """

    field_names: ClassVar[Mapping[str, str | None]] = {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's output; what ``module(…)`` calls."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`."""
        return self.forward(*args, **kwargs)

    def named_params(self) -> dict[str, Param]:
        """Return the params by dotted path, in traversal order (R14, R15); materialises nothing.

        Raises:
            ValueError: If the module contains itself, or two params have one path.
        """
        return named_params(self)

    @property
    def num_params(self) -> int:
        """The number of elements of all params, running states included; shared ones count once."""
        return sum({id(leaf.param): leaf.param.size for leaf in walk(self)}.values())

    def tensors(self) -> list[Tensor]:
        """Return the params as tensors in save form, in traversal order, with their ids (R11, R20).

        Nothing is copied, drawn or read: the tensors refer to the params' arrays, which must stay
        as they are until the tensors are written.

        Raises:
            ValueError: If the module contains itself, or two params have one path.
        """
        return [param.tensor(path) for path, param in self.named_params().items()]

    def load_tensors(
        self,
        tensors: Mapping[str, Tensor],
        *,
        allow_partial: bool = False,
        allow_unused: bool = False,
    ) -> LoadReport:
        """Take values, dtypes and ids from `tensors`, matched by path alone (R25, R26).

        All or nothing: every shape and kind is checked before the first param changes. No data is
        read; the module refers to the tensors, so a pack that is loaded must stay open.

        Args:
            tensors: tensors by path: a `Reader`, or a dict.
            allow_partial: leave params that have no tensor as they are.
            allow_unused: ignore tensors that no param asks for.

        Raises:
            RecordError: If a tensor does not fit its param, a param has no tensor, or a tensor no
                param; the message lists all three. Nothing has changed then.
        """
        return load_tensors(self, tensors, allow_partial=allow_partial, allow_unused=allow_unused)

    def extra_repr(self) -> str:
        """Return the options to show in `repr`, such as ``"1 -> 64, kernel 3x3"``."""
        return ""

    def __repr__(self) -> str:
        """Draw the tree of modules and params with dtypes and shapes; materialises nothing."""
        return draw(self)


class Variant(Module):
    """A module that is one variant of an enum: its params lie below the variant's name (R14, R15).

    ``self.block = nn.Variant("Conv", conv)`` gives ``block.Conv.weight``. Calling it calls the
    module. Assign another variant to the field to switch.

    Attributes:
        name: the variant's name.
        module: the active module (or param, or list of modules).
    """

    def __init__(self, name: str, module: Any) -> None:
        self.name = name
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the active module."""
        return self.module(*args, **kwargs)
