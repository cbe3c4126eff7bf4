"""Answers the front end's requests about a subject. Knows neither Jupyter nor a browser.

Wanted: a front end that is sent the columns once and asks for the rest when it is shown; work over
gigabytes that can be cancelled; the same in a kernel and in Pyodide, which has no threads.

So long work is cut into slices on the event loop. After each 256 KiB of a tensor the task yields,
and a message that came meanwhile, such as a cancellation, is taken first. A thread could not be had
in a page, and in a kernel it would read from objects that belong to whoever made them. What a slice
costs bounds how long the rest waits: a few milliseconds, and tens for a piece that a provider or a
disk is slow to give.

Requests and answers are dicts that JSON can hold, with flat buffers beside them::

    {"type": "request", "id": 3, "kind": "statistics", "tensor": 17}
    {"type": "progress", "id": 3, "done": 1048576, "total": 8388608}
    {"type": "answer", "id": 3, "data": {…}}          or
    {"type": "error", "id": 3, "error": {"kind": "ReadError", "message": "…"}}
    {"type": "cancel", "id": 3}
    {"type": "cancelled", "id": 3}   once the work has stopped

========== ======================================= =============================================
kind       takes                                   gives
========== ======================================= =============================================
describe                                           facts, tables, columns (`Columns.buffers`)
statistics tensor                                  `TensorStats` as a dict
picture    tensor, axes, index, size               shape, note; float32 values in a buffer
values     tensor, axes, index, row, column,       rows of text
           rows, columns
compare    data                                    differences, see `_compare.py`
========== ======================================= =============================================
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bpk_lite.inspect import Statistics, columns, summarize, tensor_slice
from bpk_lite.pack import BpkError, LimitError, Tensor
from bpk_lite_widgets._compare import compare
from bpk_lite_widgets._values import values_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence

    from bpk_lite_widgets._subject import Subject

__all__ = ["Session"]

_SLICE: Final = 1 << 18  # bytes of a tensor between two turns of the event loop
_EVERY: Final = 0.04  # seconds between two reports of progress
_PICTURE: Final = 32 << 20  # bytes that a picture may read
_KEPT: Final = 64 << 20  # bytes of a tensor that was made by a provider and may be asked for again
_MOST_NOTES: Final = 1000


class Session:
    """Answers about one subject, perhaps beside another one that it is compared with.

    Args:
        subject: what is inspected. It stays open while the session lives.
        send: takes a message and its buffers to the front end.
        other: what it is compared with.
    """

    def __init__(
        self,
        subject: Subject,
        send: Callable[[dict[str, Any], Sequence[Any]], None],
        other: Subject | None = None,
    ) -> None:
        self.subject = subject
        self.other = other
        self._send = send
        self._tasks: dict[Any, asyncio.Task[None]] = {}
        self._names: list[str] = []
        self._kept: Tensor | None = None

    def receive(self, message: Mapping[str, Any]) -> None:
        """Take a message of the front end: start what it asks for, or cancel it.

        With an event loop running, the answer is made on it. Without one, in a script, it is made
        before this returns.
        """
        key = (message.get("view"), message.get("id"))
        if message.get("type") == "cancel":
            task = self._tasks.get(key)
            if task is not None:
                task.cancel()
            return
        if message.get("type") != "request":
            return
        work = self._reply(message, key)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(work)
            return
        self._tasks[key] = loop.create_task(work)

    def close(self) -> None:
        """Cancel what is still being worked on, and close what was opened for this session."""
        for task in list(self._tasks.values()):
            task.cancel()
        self.subject.close()
        if self.other is not None:
            self.other.close()

    async def _reply(self, message: Mapping[str, Any], key: Any) -> None:
        """Answer a request; what goes wrong is an answer too, and never ends the session."""
        head = {name: message[name] for name in ("id", "view") if name in message}
        reported = time.monotonic()

        def progress(done: float, total: float) -> None:
            nonlocal reported
            if time.monotonic() - reported >= _EVERY:
                reported = time.monotonic()
                self._send({"type": "progress", **head, "done": done, "total": total}, ())

        try:
            data, buffers = await self._answer(message, progress)
            self._send({"type": "answer", **head, "data": data}, buffers)
        except asyncio.CancelledError:
            self._send({"type": "cancelled", **head}, ())
            raise
        except Exception as error:  # whatever a file does, the front end is told and lives on
            kind = type(error).__name__
            text = str(error) if isinstance(error, BpkError) else f"{kind}: {error}"
            self._send(
                {"type": "error", **head, "error": {"kind": kind, "message": text or kind}}, ()
            )
        finally:
            self._tasks.pop(key, None)

    def _answer(
        self, message: Mapping[str, Any], progress: Callable[[float, float], None]
    ) -> Coroutine[Any, Any, tuple[dict[str, Any], Sequence[Any]]]:
        kind = message["kind"]
        if kind == "describe":
            return self._describe()
        if kind == "compare" and self.other is not None:
            return compare(self.subject, self.other, bool(message.get("data")), progress)
        tensor = self._tensor(message["tensor"])
        if kind == "statistics":
            return self._statistics(tensor, progress)
        if kind == "picture":
            return self._picture(tensor, message)
        if kind == "values":
            return self._values(tensor, message)
        raise ValueError(f"unknown request {kind!r}")

    def _tensor(self, index: int) -> Tensor:
        return self.subject.tensor(self._names[index])

    # -- the whole

    async def _describe(self) -> tuple[dict[str, Any], Sequence[Any]]:
        subject = self.subject
        summary = summarize(subject.content, name=subject.name)
        table = columns(summary)
        self._names = [row.name for row in summary.rows]
        notes: list[dict[str, Any]] = [
            {"code": "left out", "message": text, "tensor": None, "level": "note"}
            for text in summary.notes
        ]
        place = {name: at for at, name in enumerate(self._names)} if summary.warnings else {}
        notes += [
            {
                "code": found.code,
                "message": found.message,
                "tensor": None if found.tensor is None else place.get(found.tensor),
                "level": "warning",
            }
            for found in summary.warnings
        ]
        data = {
            "facts": {
                "name": subject.name,
                "format": subject.origin or _FORMATS.get(summary.format, summary.format),
                "kind": summary.kind if summary.format == "burnpack" else "",
                "size": subject.size,
                "tensors": table.count,
                "elements": table.elements,
                "nbytes": sum(share[2] for share in table.shares),
                "padding": summary.padding_share,
                "dtypes": [
                    {"dtype": dtype, "tensors": count, "nbytes": part}
                    for dtype, count, part in table.shares
                ],
            },
            "metadata": sorted(summary.metadata.items()),
            "scalars": [
                (name, scalar.kind, str(scalar.value))
                for name, scalar in sorted(summary.scalars.items())
            ],
            "notes": notes[:_MOST_NOTES],
            "source": {
                "imports": subject.snippet.imports,
                "open": subject.snippet.open,
                "item": subject.snippet.item,
            },
            "compare": None if self.other is None else {"name": self.other.name},
            "columns": table.header(),
        }
        return data, table.buffers()

    # -- one tensor

    async def _statistics(
        self, tensor: Tensor, progress: Callable[[float, float], None]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        statistics = Statistics(tensor.dtype, shape=tensor.shape)
        done = 0
        async for part in _slices(tensor):
            statistics.update(part)
            done += part.nbytes
            progress(done, tensor.nbytes)
        return _exact(statistics.result().to_dict()), ()

    async def _picture(
        self, tensor: Tensor, message: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        axes = message["axes"]
        index = {int(axis): at for axis, at in message["index"].items()}
        size = int(message["size"])
        shown = self._in_memory(tensor)
        method = _affordable(shown, axes, size)
        part = tensor_slice(shown, axes=axes, index=index, max_size=size, method=method)
        values = np.ascontiguousarray(part.values, "<f4")
        down, across = part.block
        note = ""
        if part.method != "all":
            both = down > 1 and across > 1
            block = f"{down} × {across} elements" if both else f"{down * across} elements"
            stands = "the mean of" if part.method == "mean" else "one of"
            note = f"Each pixel is {stands} {block}."
        data = {"shape": list(values.shape), "note": note}
        return data, [values.tobytes()]

    async def _values(
        self, tensor: Tensor, message: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        rows = values_text(
            self._in_memory(tensor),
            message["axes"],
            {int(axis): at for axis, at in message["index"].items()},
            (int(message["row"]), int(message["column"])),
            (min(64, int(message["rows"])), min(64, int(message["columns"]))),
        )
        return {"rows": rows}, ()

    def _in_memory(self, tensor: Tensor) -> Tensor:
        """Return a tensor that can be read in parts, without making it anew for each.

        One that a provider makes is made once and kept until another is looked at; a quantized one
        becomes the float32 values that it stands for.
        """
        quantized = tensor.dtype.kind == "quantized"
        if not (tensor.is_deferred or quantized):
            return tensor
        kept = self._kept
        if kept is not None and (kept.name, kept.shape) == (tensor.name, tensor.shape):
            return kept
        size = 4 * tensor.size if quantized else tensor.nbytes
        if size > _KEPT:
            raise LimitError(
                f"{tensor.name!r} must be made whole to be looked into, which takes "
                f"{size >> 20} MiB; up to {_KEPT >> 20} MiB are made. "
                "Its statistics can be computed all the same."
            )
        self._kept = None
        if quantized:
            self._kept = Tensor.from_array(tensor.name, tensor.numpy())
        else:
            made = tensor.to_bytes()
            self._kept = Tensor.from_bytes(tensor.name, tensor.dtype, tensor.shape, made)
        return self._kept


_FORMATS: Final = {
    "burnpack": "burnpack",
    "safetensors": "SafeTensors",
    "pytorch": "PyTorch checkpoint",
    "npz": "NumPy archive",
    "gguf": "GGUF",
}


async def _slices(tensor: Tensor) -> AsyncIterator[memoryview]:
    """Yield all bytes of a tensor, with a turn of the event loop before each slice."""
    for piece in tensor.pieces():
        for start in range(0, piece.nbytes, _SLICE):
            await asyncio.sleep(0)
            yield piece[start : start + _SLICE]
    await asyncio.sleep(0)


def _affordable(tensor: Tensor, axes: Sequence[int] | None, size: int) -> Any:
    """Return how a picture is made without reading more than it is worth.

    Raises:
        LimitError: even one row for each row of the picture would be too much.
    """
    shape, itemsize = tensor.shape, tensor.dtype.stored.itemsize
    if axes is None:
        height, row = 1, tensor.nbytes
    else:
        height = shape[axes[0]]
        row = shape[axes[1]] * math.prod(shape[axes[1] + 1 :]) * itemsize
    if height * row <= _PICTURE:
        return "mean"
    if min(height, size) * row <= _PICTURE:
        return "nearest"
    raise LimitError(
        f"a picture would read {min(height, size) * row >> 20} MiB, more than the "
        f"{_PICTURE >> 20} MiB it may; the values beside it and the statistics read less"
    )


def _exact(stats: dict[str, Any]) -> dict[str, Any]:
    """Return statistics with integers as text that JavaScript would round."""
    return {
        name: str(value) if isinstance(value, int) and abs(value) > 1 << 53 else value
        for name, value in stats.items()
    }
