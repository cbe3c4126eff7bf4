"""Put the static site together: fetch the runtime, build the wheels, precompile, write the folder.

The rooms, in the order a file walks through them::

    lock.py         runtime.lock.json as values: each file, its sha256, where to get it
    sources.py      one attempt at one source (a URL, an npm package, a wheel on PyPI)
    store.py        the files by sha256 in .cache/, filled from the sources in order
    wheels.py       this project's own wheels, and what a wheel says about itself
    precompile.py   .py to .pyc inside Pyodide itself (precompile.mjs, run by node)
    pyodide_lock.py the trimmed pyodide-lock.json
    site.py         all of it in one folder, swapped in at once

Nothing here is part of the page: a visitor's browser sees only what `site.py` writes.
"""

from __future__ import annotations

__all__ = ["AssemblyError"]


class AssemblyError(RuntimeError):
    """The site cannot be put together; the message says what failed and what to do."""
