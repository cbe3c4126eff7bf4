"""What stores raise, beside the errors of the container.

BpkError
├── PickleError (FormatError)        a pickle is broken or says what cannot be
└── StoreError (ValueError)          a store cannot do what was asked
    ├── NameCollision                two tensors would get one name
    ├── ApplyError                   tensors do not fit the target; has the `ApplyResult`
    ├── ConfigError                  settings do not fit the type that was asked for
    └── UnsupportedDType (TypeError) the format has no such element type
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpk_lite.pack import BpkError, FormatError

if TYPE_CHECKING:
    from bpk_lite.store._result import ApplyResult

__all__ = [
    "ApplyError",
    "ConfigError",
    "NameCollision",
    "PickleError",
    "StoreError",
    "UnsupportedDType",
]


class PickleError(FormatError):
    """A pickle is broken, cut short, or says what cannot be. Nothing of it was executed."""


class StoreError(BpkError, ValueError):
    """A store cannot do what was asked of it."""


class NameCollision(StoreError):
    """Two tensors would get one name; the message names both."""


class ApplyError(StoreError):
    """Tensors do not fit the target; the message carries the summary.

    Attributes:
        result: what was found, as `ApplyResult`.
    """

    def __init__(self, message: str, result: ApplyResult) -> None:
        super().__init__(message, result)
        self.result = result

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.result)


class ConfigError(StoreError):
    """A setting in a checkpoint is missing or of another type; the message says where."""


class UnsupportedDType(StoreError, TypeError):
    """The format has no element type for a tensor; the message names it."""
