"""The widget: a session behind an anywidget."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Any, Final

import anywidget
import traitlets

from bpk_lite.inspect import summarize
from bpk_lite_widgets._modules import join
from bpk_lite_widgets._session import Session
from bpk_lite_widgets._subject import Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpk_lite.pack import Tensor

__all__ = ["Inspector"]

_STATIC: Final = importlib.resources.files("bpk_lite_widgets") / "static"


class Inspector(anywidget.AnyWidget):
    """Shows what a checkpoint holds, in JupyterLab, Notebook, VS Code, Colab, marimo, JupyterLite.

    It is sent the names, types and shapes once. Data are read when a tensor is chosen, and only
    those that are shown; statistics of large tensors when asked for, and they can be cancelled.

    Args:
        source: a path (``.bpk``, ``.safetensors``, ``.pt``, ``.npz``), bytes, an open `Reader`, a
            record, a mapping from name to array, or a module of torch or of `bpk_lite.nn`.
        compare: another of these, to show the differences.
        selected: name of the tensor to choose at first.
        filter: text to filter the names by.
        filter_kind: ``"text"``, ``"glob"`` or ``"regex"``.

    Raises:
        TypeError: `source` is none of these.
        BpkError: it cannot be opened; see `bpk_lite.convert.open_contents`.
        traitlets.TraitError: there is no tensor of the name `selected`.

    Attributes:
        selected: name of the chosen tensor, or None. Set it to choose.
        filter: what the names are filtered by.
        filter_kind: how.
    """

    _esm = join(_STATIC, "widget.mjs")
    _css = _STATIC.joinpath("inspector.css").read_text(encoding="utf-8")

    selected = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    filter = traitlets.Unicode("").tag(sync=True)
    filter_kind = traitlets.Enum(("text", "glob", "regex"), "text").tag(sync=True)

    def __init__(
        self,
        source: Any,
        *,
        compare: Any = None,
        selected: str | None = None,
        filter: str = "",
        filter_kind: str = "text",
    ) -> None:
        subject = Subject.of(source)
        try:
            other = None if compare is None else Subject.of(compare)
        except BaseException:
            subject.close()
            raise
        self._session = Session(subject, self._to_front, other)
        super().__init__(selected=selected, filter=filter, filter_kind=filter_kind)
        self.on_msg(self._from_front)

    def tensor(self, name: str | None = None) -> Tensor:
        """Return a tensor: the chosen one, or the one of `name`. Reads nothing.

        Raises:
            LookupError: none is chosen, or there is none of that name.
        """
        name = self.selected if name is None else name
        if name is None:
            raise LookupError("no tensor is chosen; click on one, or set `selected` to a name")
        return self._session.subject.tensor(name)

    def close(self) -> None:
        """Take the widget off the screen and close the file, if it was opened by its path."""
        if hasattr(self, "_session"):  # not if the constructor refused; it is closed all the same
            self._session.close()
        super().close()

    @traitlets.validate("selected")
    def _known(self, proposal: Any) -> str | None:
        name: str | None = proposal["value"]
        if name is not None:
            try:
                self._session.subject.tensor(name)
            except KeyError as error:
                raise traitlets.TraitError(str(error.args[0]) if error.args else name) from error
        return name

    def _to_front(self, message: dict[str, Any], buffers: Sequence[Any]) -> None:
        self.send(message, list(buffers))

    def _from_front(self, _: Any, message: Any, buffers: Any) -> None:
        if isinstance(message, dict):
            self._session.receive(message)

    def _repr_mimebundle_(self, **keywords: Any) -> Any:
        """Return the widget, with the summary as plain HTML for where no widget can be shown."""
        bundle = super()._repr_mimebundle_(**keywords)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            subject = self._session.subject
            summary = summarize(subject.content, name=subject.name)
            data.setdefault("text/html", summary._repr_html_())
            data["text/plain"] = str(summary)
        return bundle

    def __repr__(self) -> str:
        return f"<Inspector {self._session.subject.name}>"
