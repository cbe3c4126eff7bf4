"""A model that lies inside a Python package, the counterpart of Rust's ``include_bytes!``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from bpk_lite.pack import Reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpk_lite.nn._module import Module

__all__ = ["static_model"]

M = TypeVar("M", bound="Module")


def static_model(factory: Callable[[], M], package: str, resource: str) -> M:
    """Build a module and load the pack that `package` carries as `resource`.

    Initial values are never drawn and no tensor is copied: each param becomes a read-only view of
    the pack when it is first used.

    Args:
        factory: the module's class, or any function that builds it.
        package: the import name of the package, such as ``"my_package"``.
        resource: the file inside it, such as ``"net.bpk"``.

    Raises:
        ReadError: If the package or the file in it does not exist.
        FormatError: If the file is not a burnpack.
        RecordError: If its tensors do not fit the module.
    """
    module = factory()
    module.load_tensors(Reader.from_static(package, resource))
    return module
