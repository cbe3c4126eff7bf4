"""The inspector of bpk_lite for notebooks: what a checkpoint holds, at a glance.

``Inspector("model.bpk")`` in any host of ipywidgets (extra ``widgets``)::

    from bpk_lite_widgets import Inspector

    view = Inspector("model.bpk", compare="other.bpk")
    view  # shows it
    view.selected = "layers.0.weight"
    view.tensor()[:2]

The rooms::

    _subject.py    what is inspected, whatever it was given as
    _session.py    answers the front end's requests about a subject; knows no host
    _inspector.py  the widget: a session behind an anywidget
    _modules.py    the ES modules in `static/`, joined into the one file that anywidget takes
    static/        the drawing modules, which the inspector page uses as they are

Importing this package imports no anywidget, so that the page, whose Python answers from a worker,
can use the session without it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpk_lite_widgets._inspector import Inspector

__all__ = ["Inspector"]


def __getattr__(name: str) -> Any:
    """Import the widget when it is first named."""
    if name != "Inspector":
        raise AttributeError(f"module 'bpk_lite_widgets' has no attribute {name!r}")
    try:
        from bpk_lite_widgets._inspector import Inspector
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "traitlets", "ipywidgets"):
            raise
        from bpk_lite import DependencyError

        raise DependencyError(
            f"the inspector needs {error.name}: install the extra, pip install 'bpk-lite[widgets]'"
        ) from error
    return Inspector


def __dir__() -> list[str]:
    return sorted(__all__)
