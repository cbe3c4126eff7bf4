"""A checkpointer that works on a thread of its own (R78), and loses no error.

Burn's says at every save that all is well, and shows a failure by stopping the training if
somebody gave it the means, or else by a panic at the next call. Here a failure is kept and raised
by the next call, or by `close`, as the exception that it was.
"""

from __future__ import annotations

import logging
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpk_lite.desktop._checkpoint import Checkpointer

__all__ = ["AsyncCheckpointer"]

_log = logging.getLogger("bpk_lite")


class AsyncCheckpointer:
    """Runs the saves and deletes of another checkpointer on one thread, in order.

    There is no queue: a call waits until the thread has finished its job, hands over its own and
    returns. So at most one record is waiting in memory, and a failed job is noticed by the very
    next call, which raises its error *instead of* doing its own job.

    The record must stay as it is until it is written. Those of `bpk_lite.nn` and `bpk_lite.optim`
    do, for a step replaces arrays; of a torch module give ``bt.into_record(module, copy=True)``
    (otherwise a save that a step has overtaken is an error, never a mixture).

    A context manager, which closes it. Dropping it, or the end of the program, waits for the job in
    progress too, but can only log its error.
    """

    def __init__(self, inner: Checkpointer[Any]) -> None:
        self.inner = inner
        self._calls = threading.Lock()
        self._worker = _Worker()
        self._end = weakref.finalize(self, self._worker.end_quietly)

    def save(self, epoch: int, record: Any) -> None:
        """Hand over a record to be saved.

        Raises:
            ValueError: it has been closed.
            Exception: the one that an earlier job failed with; nothing is saved then.
        """
        self._hand_over(partial(self.inner.save, epoch, record), f"saving epoch {epoch}")

    def delete(self, epoch: int) -> None:
        """Hand over an epoch to be deleted; raises as `save` does."""
        self._hand_over(partial(self.inner.delete, epoch), f"deleting epoch {epoch}")

    def restore(self, epoch: int) -> Any:
        """Return the record of an epoch, when the jobs before are done; raises as `save` does."""
        with self._calls:
            self._worker.wait()
            return self.inner.restore(epoch)

    def close(self) -> None:
        """Wait for the job in progress and end the thread; may be called again.

        Raises:
            Exception: the one that the last job failed with.
        """
        with self._calls:
            self._end.detach()
            self._worker.end()

    def _hand_over(self, job: Callable[[], object], what: str) -> None:
        with self._calls:
            self._worker.wait()
            self._worker.take(job, what)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except Exception as second:
            error.add_note(f"the checkpointer failed too: {type(second).__name__}: {second}")


class _Worker:
    """The thread, and what it shares with callers. It does not keep the checkpointer alive."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._job: Callable[[], object] | None = None
        self._what = ""
        self._error: BaseException | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="bpk_lite checkpoints", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the thread is idle; raise what its last job failed with, once."""
        with self._changed:
            self._changed.wait_for(lambda: self._job is None)
            if self._closed:
                raise ValueError("the checkpointer has been closed")
            self._raise()

    def take(self, job: Callable[[], object], what: str) -> None:
        """Give a job to the idle thread."""
        with self._changed:
            self._job, self._what = job, what
            self._changed.notify_all()

    def end(self) -> None:
        """Wait, end the thread, raise what is left to raise."""
        with self._changed:
            self._changed.wait_for(lambda: self._job is None)
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._raise()

    def end_quietly(self) -> None:
        """End when nobody is there to catch anything."""
        try:
            self.end()
        except BaseException as error:  # in a finalizer it would go nowhere
            _log.error("%s in the background failed: %s", self._what, error)

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._job is not None or self._closed)
                if self._job is None:
                    return
                job = self._job
            failure = None
            try:
                job()
            except BaseException as error:  # the next call raises it
                error.add_note(f"while {self._what} in the background")
                failure = error
            del job
            with self._changed:
                self._job, self._error = None, failure
                self._changed.notify_all()
