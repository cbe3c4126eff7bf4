"""`Module`, the base of everything that has params, and `Variant`, the enum among modules.

A module is an ordinary class: fields are assigned in ``__init__`` (no ``super().__init__()``), the
base class keeps no books, and nothing is registered. What belongs to a module is found by looking
at its fields when somebody asks (`bpk_lite.nn._walk`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from bpk_lite.nn._cast import bits_of, convert, live, widen
from bpk_lite.nn._load import LoadReport, load_tensors
from bpk_lite.nn._save import into_record
from bpk_lite.nn._tree import draw
from bpk_lite.nn._walk import named_params, walk
from bpk_lite.pack import DType
from bpk_lite.records import ModuleRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from bpk_lite.nn._group import ParamGroup
    from bpk_lite.nn._param import DTypePolicy, Param
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

    # -- records

    def tensors(self) -> list[Tensor]:
        """Return the params as tensors in save form, in traversal order, with their ids (R11, R20).

        Nothing is copied, drawn or read: the tensors refer to the params' arrays, which must stay
        as they are until the tensors are written.

        Raises:
            ValueError: If the module contains itself, or two params have one path.
        """
        return [param.tensor(path) for path, param in self.named_params().items()]

    def into_record(self) -> ModuleRecord:
        """Return the params as a record, in traversal order, with their ids (R11, R12).

        Nothing is copied, drawn or read, as for `tensors`; the module stays usable.

        Raises:
            ValueError: If the module contains itself, or two params have one path.
        """
        return into_record(self)

    def into_record_group(self, group: ParamGroup) -> ModuleRecord:
        """Return the params of `group` alone as a record; the others are not read (R21).

        It loads back with `allow_partial`.

        Raises:
            ValueError: If the module contains itself, or two params have one path.
        """
        return into_record(self, group)

    def load_tensors(
        self,
        tensors: Mapping[str, Tensor],
        *,
        allow_partial: bool = False,
        allow_unused: bool = False,
        validate: bool = True,
        dtype_policy: DTypePolicy = "record",
    ) -> LoadReport:
        """Take values, dtypes and ids from `tensors`, matched by path alone (R25, R26).

        All or nothing: every shape and dtype is checked before the first param changes. No data is
        read but what may not fit an integer dtype; the module refers to the tensors, so a pack that
        is loaded must stay open.

        Args:
            tensors: tensors by path: a `Reader`, or a dict.
            allow_partial: leave params that have no tensor as they are.
            allow_unused: ignore tensors that no param asks for.
            validate: whether another shape is an error; otherwise such params stay as they are, and
                everything else is checked and loaded (R31).
            dtype_policy: ``"record"`` changes the params' dtypes to the tensors', ``"module"``
                converts the tensors; see `Param.fit` (R28).

        Raises:
            RecordError: If a tensor does not fit its param, a param has no tensor, or a tensor no
                param; the message lists all three. Nothing has changed then.
            ValueError: If the module contains itself, or two params have one path.
        """
        return load_tensors(
            self,
            tensors,
            allow_partial=allow_partial,
            allow_unused=allow_unused,
            validate=validate,
            dtype_policy=dtype_policy,
        )

    def load_record(
        self,
        record: ModuleRecord,
        *,
        allow_partial: bool = False,
        allow_unused: bool = False,
        validate: bool = True,
        dtype_policy: DTypePolicy = "record",
    ) -> LoadReport:
        """Take values, dtypes and ids from a record: `load_tensors` of its tensors (R24 to R34).

        Scalars and metadata in it are ignored (R35).
        """
        return load_tensors(
            self,
            record.tensors,
            allow_partial=allow_partial,
            allow_unused=allow_unused,
            validate=validate,
            dtype_policy=dtype_policy,
        )

    def save(self, path: Any, *, overwrite: bool = True, durable: bool = True) -> str:
        """Write the module's record to a file; return the path with its extension (R36).

        Raises:
            WriteError, AlreadyExists: see `Record.save`.
        """
        return self.into_record().save(path, overwrite=overwrite, durable=durable)

    def load(self, path: Any) -> LoadReport:
        """Load a file with the default options (R36); `load_record` has the others.

        The file stays open, and gives its old content also after it has been replaced.

        Raises:
            ReadError: If the file cannot be read.
            FormatError: If it is not a pack, or a broken one.
            RecordError: If its tensors do not fit; nothing has changed then.
        """
        return self.load_record(ModuleRecord.load(path))

    # -- all params at once

    def visit(self, visitor: Callable[[str, Param], object]) -> None:
        """Call `visitor` with path and param of every leaf, in traversal order.

        A shared param comes once for each of its paths (R19).
        """
        for leaf in walk(self):
            visitor(leaf.path, leaf.param)

    def map(self, mapper: Callable[[str, NDArray[Any]], NDArray[Any]]) -> Self:
        """Replace each param's value by what `mapper` makes of its path and value; return `self`.

        The result must have the param's shape and kind; its dtype may be another. BF16 comes as
        float32, and a float32 result goes back to BF16. A shared param is mapped once, under its
        first path. Nothing changes if `mapper` or a result fails.

        Raises:
            ValueError: If a result does not fit its param.
        """
        firsts = {id(leaf.param): leaf for leaf in reversed(list(walk(self)))}.values()
        made = [(leaf.param, _mapped(leaf.param, leaf.path, mapper)) for leaf in reversed(firsts)]
        for param, value in made:
            param.check(value)
        for param, value in made:
            param.value = value
        return self

    def cast(self, dtype: DType | str) -> Self:
        """Convert every float param and running state to `dtype`; return `self`.

        In place, so that an optimizer that knows the params keeps knowing them; Burn returns a new
        module. Rounds as R29 says, and draws and reads nothing. Integer and boolean params, and
        quantized ones, which have no conversion, stay as they are.

        Raises:
            ValueError: If `dtype` is no float dtype.
        """
        target = DType.parse(dtype)
        if target.kind != "float":
            raise ValueError(f"float params are cast to a float dtype, not to {target}")
        for param in self._params():
            if param.dtype.kind == "float":
                param.cast(target)
        return self

    def require_grad(self, required: bool = True) -> Self:
        """Say whether training may change the params; return `self`. Running states never are."""
        for param in self._params():
            param.require_grad = required and not param.running
        return self

    def no_grad(self) -> Self:
        """Freeze every param; return `self`. Loading a record keeps them frozen (R26)."""
        return self.require_grad(False)

    def _params(self) -> Collection[Param]:
        return {id(leaf.param): leaf.param for leaf in walk(self)}.values()

    # -- for people

    def extra_repr(self) -> str:
        """Return the options to show in `repr`, such as ``"1 -> 64, kernel 3x3"``."""
        return ""

    def __repr__(self) -> str:
        """Draw the tree of modules and params with dtypes and shapes; materialises nothing."""
        return draw(self)


def _mapped(
    param: Param, path: str, mapper: Callable[[str, NDArray[Any]], NDArray[Any]]
) -> NDArray[Any]:
    if param.dtype != DType.BF16:
        return mapper(path, param.value)
    made = mapper(path, widen(param.value))
    if DType.of(made) != DType.F32:
        return made
    return live(convert(bits_of(made, DType.F32), DType.F32, DType.BF16), DType.BF16)


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
