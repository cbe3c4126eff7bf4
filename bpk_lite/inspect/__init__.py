"""Look into packs, records and files of weights: one model for terminal, notebook and page.

`summarize` describes without touching data; `verify` lists what is odd about a pack that opens all
the same; `tensor_stats` and `tensor_slice` say what one tensor is like, in little memory; `diff`
compares two, and `digest` names what is in one. Everything reads lazily and works in a browser.
"""

from bpk_lite.inspect._columns import Columns, columns
from bpk_lite.inspect._content import Content, HoldsTensors, Inspectable, content_of
from bpk_lite.inspect._diff import Diff, DiffRow, diff
from bpk_lite.inspect._digest import digest, tensor_digest
from bpk_lite.inspect._distribution import Histogram
from bpk_lite.inspect._html import html
from bpk_lite.inspect._slice import Slice, SliceError, tensor_slice
from bpk_lite.inspect._stats import Statistics, TensorStats, tensor_stats
from bpk_lite.inspect._summary import Row, Summary, summarize
from bpk_lite.inspect._tree import Node, tree
from bpk_lite.inspect._verify import Finding, verify

__all__ = [
    "Columns",
    "Content",
    "Diff",
    "DiffRow",
    "Finding",
    "Histogram",
    "HoldsTensors",
    "Inspectable",
    "Node",
    "Row",
    "Slice",
    "SliceError",
    "Statistics",
    "Summary",
    "TensorStats",
    "columns",
    "content_of",
    "diff",
    "digest",
    "html",
    "summarize",
    "tensor_digest",
    "tensor_slice",
    "tensor_stats",
    "tree",
    "verify",
]
