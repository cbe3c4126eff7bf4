"""Look into a pack without touching its data, or with care: one summary for every face.

`summarize` feeds the command line, and later the notebook and the page; `verify` lists what is odd
about a pack that opens all the same.
"""

from bpk_lite.inspect._summary import Row, Summary, summarize
from bpk_lite.inspect._tree import Node, tree
from bpk_lite.inspect._verify import Finding, verify

__all__ = ["Finding", "Node", "Row", "Summary", "summarize", "tree", "verify"]
