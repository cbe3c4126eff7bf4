"""Every error the container layer raises.

The tree; each leaf is also the builtin that a caller would catch::

    BpkError
    ├── FormatError (ValueError)            the file's fault
    │   ├── InvalidHeader                   too short for a header or for the metadata it claims
    │   ├── InvalidMagicNumber              not a burnpack; says what it looks like
    │   ├── InvalidVersion
    │   ├── MetadataDeserializationError    the CBOR is broken or says what a pack may not say
    │   └── ValidationError                 lengths, ranges, shapes
    │       ├── TruncatedError (EOFError)   the file ends before its tensors do
    │       └── LimitError                  beyond a limit of `Limits`; also when planning
    ├── TensorNotFound (KeyError)
    ├── TensorClosedError (ValueError)      data asked of a pack that was closed
    ├── MetadataSerializationError (ValueError)
    ├── PlanError (ValueError)              the caller's tensors cannot make a pack
    ├── ProviderError                       a deferred tensor's provider failed
    │   └── TensorBytesSizeMismatch (ValueError)
    ├── WriteError (OSError)                the destination's fault
    │   └── AlreadyExists (FileExistsError)
    ├── ReadError (OSError)                 the source's fault
    ├── DependencyError (ImportError)       an optional package is missing; says which to install
    └── RecordError (ValueError)            tensors do not fit a module

`FormatError` is about bytes that came from elsewhere, `PlanError` about what the caller asked for.
All of them pickle: they carry their message and keyword facts only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AlreadyExists",
    "BpkError",
    "DependencyError",
    "FormatError",
    "InvalidHeader",
    "InvalidMagicNumber",
    "InvalidVersion",
    "LimitError",
    "MetadataDeserializationError",
    "MetadataSerializationError",
    "PlanError",
    "ProviderError",
    "ReadError",
    "RecordError",
    "TensorBytesSizeMismatch",
    "TensorClosedError",
    "TensorNotFound",
    "TruncatedError",
    "ValidationError",
    "WriteError",
]


class BpkError(Exception):
    """The root of every error that bpk_lite raises on purpose."""

    def __str__(self) -> str:
        # KeyError would show the message in quotes, OSError would look for errno.
        return str(self.args[0]) if self.args else ""


class FormatError(BpkError, ValueError):
    """The bytes are not a burnpack that may be read (container.md section 13)."""


class InvalidHeader(FormatError):
    """Fewer bytes than the header, or than the metadata it announces (C75)."""


class InvalidMagicNumber(FormatError):
    """The first four bytes are not ``NRUB`` (C5); the message says what the file looks like."""


class InvalidVersion(FormatError):
    """The format version is above 1 (C7)."""


class MetadataDeserializationError(FormatError):
    """The metadata is not CBOR, or not the CBOR of a burnpack; carries the path inside it."""


class ValidationError(FormatError):
    """A tensor's offsets, length, shape and dtype contradict each other (C80, C123)."""


class TruncatedError(ValidationError, EOFError):
    """The file ends before its last tensor does (C77), or shrank while being read."""


class LimitError(ValidationError):
    """Something exceeds a limit of `Limits` (C78)."""


class TensorNotFound(BpkError, KeyError):
    """No tensor of that name; the message lists close names."""


class TensorClosedError(BpkError, ValueError):
    """Data was asked of a tensor whose pack has been closed."""


class MetadataSerializationError(BpkError, ValueError):
    """A metadata value cannot be written as CBOR text, or the whole exceeds 32 bits (C91)."""


class PlanError(BpkError, ValueError):
    """The tensors, metadata or scalars given cannot make a pack that a reader would accept."""


class ProviderError(BpkError):
    """A deferred tensor's provider raised; names the tensor, the cause is chained (C100)."""


class TensorBytesSizeMismatch(ProviderError, ValueError):
    """A provider gave another number of bytes than was declared (C93)."""


class WriteError(BpkError, OSError):
    """The destination could not be written; names the path (C116)."""


class AlreadyExists(WriteError, FileExistsError):
    """The destination exists and overwriting was refused (C117)."""


class ReadError(BpkError, OSError):
    """The source could not be opened or read; names the path (C76)."""


class DependencyError(BpkError, ImportError):
    """An optional package is needed; the message has the command that installs it."""


class RecordError(BpkError, ValueError):
    """Tensors do not fit a module: missing, unused and mismatched ones are listed together.

    Attributes:
        missing: paths of params that have no tensor, in traversal order.
        unused: names of tensors that no param asks for, sorted.
        mismatched: paths whose tensor has another shape, or a dtype that the param cannot take.
    """

    missing: tuple[str, ...]
    unused: tuple[str, ...]
    mismatched: tuple[str, ...]

    def __init__(
        self,
        *args: object,
        missing: Iterable[str] = (),
        unused: Iterable[str] = (),
        mismatched: Iterable[str] = (),
    ) -> None:
        super().__init__(*args)
        # Plain attributes: pickling an exception restores them after calling it with `args`.
        self.missing = tuple(missing)
        self.unused = tuple(unused)
        self.mismatched = tuple(mismatched)
