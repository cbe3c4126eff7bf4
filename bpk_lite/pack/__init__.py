"""The burnpack container: bytes in, bytes out (container.md).

Reading goes ``buffer or source -> Header -> CBOR -> checked Metadata -> Reader -> Tensor``, writing
``Tensors -> Writer -> Plan -> buffers -> bytes, buffer, file or sink``. Nothing here touches a
file; the few names that take a path ask `bpk_lite.desktop` for it.
"""

from bpk_lite.pack._data import WINDOW, Part
from bpk_lite.pack._dtype import DType
from bpk_lite.pack._errors import (
    AlreadyExists,
    BpkError,
    DependencyError,
    FormatError,
    InvalidHeader,
    InvalidMagicNumber,
    InvalidVersion,
    LimitError,
    MetadataDeserializationError,
    MetadataSerializationError,
    PlanError,
    ProviderError,
    ReadError,
    RecordError,
    TensorBytesSizeMismatch,
    TensorClosedError,
    TensorNotFound,
    TruncatedError,
    ValidationError,
    WriteError,
)
from bpk_lite.pack._header import ALIGNMENT, Header
from bpk_lite.pack._layout import Layout
from bpk_lite.pack._layout import Progress as Progress  # an alias, for annotations
from bpk_lite.pack._limits import Limits
from bpk_lite.pack._metadata import Entry
from bpk_lite.pack._param_id import ParamId
from bpk_lite.pack._quant import QuantScheme
from bpk_lite.pack._reader import Reader
from bpk_lite.pack._scalar import Scalar
from bpk_lite.pack._sniff import looks_like
from bpk_lite.pack._source import ByteSink, ByteSource, BytesSource
from bpk_lite.pack._tensor import Tensor
from bpk_lite.pack._writer import Plan, Writer

__all__ = [
    "ALIGNMENT",
    "WINDOW",
    "AlreadyExists",
    "BpkError",
    "ByteSink",
    "ByteSource",
    "BytesSource",
    "DType",
    "DependencyError",
    "Entry",
    "FormatError",
    "Header",
    "InvalidHeader",
    "InvalidMagicNumber",
    "InvalidVersion",
    "Layout",
    "LimitError",
    "Limits",
    "MetadataDeserializationError",
    "MetadataSerializationError",
    "ParamId",
    "Part",
    "Plan",
    "PlanError",
    "ProviderError",
    "QuantScheme",
    "ReadError",
    "Reader",
    "RecordError",
    "Scalar",
    "Tensor",
    "TensorBytesSizeMismatch",
    "TensorClosedError",
    "TensorNotFound",
    "TruncatedError",
    "ValidationError",
    "WriteError",
    "Writer",
    "looks_like",
]
