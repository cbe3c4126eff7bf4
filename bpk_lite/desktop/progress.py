"""Bars for the ``progress=`` of long work: rich's and tqdm's, each where it is installed.

::

    with rich_progress("saving") as progress:
        bpk.save_file(tensors, "model.bpk", progress=progress)

A callback of your own is any function ``(name, done_bytes, total_bytes)``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from bpk_lite.pack import DependencyError
from bpk_lite.pack._format import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpk_lite.pack import Progress

__all__ = ["rich_progress", "tqdm_progress"]


@contextlib.contextmanager
def rich_progress(description: str = "", *, console: Any = None) -> Iterator[Progress]:
    """Show a bar on a terminal, and nothing elsewhere; it vanishes at the end.

    Args:
        description: what stands before the bar.
        console: a ``rich.console.Console``; the default writes to standard error.

    Raises:
        DependencyError: rich is not installed.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
        from rich.progress import TransferSpeedColumn as Speed
        from rich.table import Column
        from rich.text import Text
    except ImportError as error:
        raise DependencyError("a bar by rich needs it: pip install 'bpk-lite[cli]'") from error
    screen = Console(stderr=True) if console is None else console
    name = TextColumn("{task.fields[tensor]}", table_column=Column(no_wrap=True, max_width=40))
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        Speed(),
        name,
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    ) as bar:
        task = bar.add_task(description, total=None, tensor="")

        def progress(tensor: str, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, tensor=Text(safe_text(tensor)).markup)

        yield progress


@contextlib.contextmanager
def tqdm_progress(description: str = "", **options: Any) -> Iterator[Progress]:
    """Show a bar by tqdm, in a notebook its widget.

    Args:
        description: what stands before the bar.
        **options: for ``tqdm``.

    Raises:
        DependencyError: tqdm is not installed.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise DependencyError("a bar by tqdm needs it: pip install tqdm") from error
    with tqdm(desc=description or None, unit="B", unit_scale=True, **options) as bar:

        def progress(_tensor: str, done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
