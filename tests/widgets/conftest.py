"""The widget in Chromium: a host in small, axe-core, and checkpoints to look at."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

_HERE = Path(__file__).resolve().parent
# None of these folders is a package.
sys.path[:0] = [
    str(_HERE.parent.parent / "web-demo"), str(_HERE.parent / "browser"), str(_HERE),
]  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

_figures = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def host() -> Iterator[Any]:
    """A kernel and its pages."""
    from host import Host

    running = Host()
    yield running
    running.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium; each context of it is a fresh profile."""
    from demo_browser import shared_chromium

    with shared_chromium() as running:
        yield running


class Tab:
    """A page in a profile of its own, with all its complaints written down."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.context = browser.new_context(
            **({"viewport": {"width": 1100, "height": 760}} | options)
        )
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.allowed: str | None = None  # text of complaints that are expected
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._console)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")


@pytest.fixture
def tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """A function that opens a page; keywords are playwright's options of a context."""
    made: list[Tab] = []

    def make(**options: Any) -> Tab:
        made.append(Tab(browser, **options))
        return made[-1]

    yield make
    for one in made:
        one.context.close()


@pytest.fixture
def show(host: Any, tab: Callable[..., Tab]) -> Iterator[Callable[..., tuple[Any, Page]]]:
    """A function that shows an `Inspector` of its arguments, and returns it with its page.

    At the end of the test the page must not have complained about anything but what is `allowed`.
    """
    from bpk_lite_widgets import Inspector

    widgets: list[Any] = []
    tabs: list[Tab] = []

    def make(
        source: Any,
        *,
        options: dict[str, Any] | None = None,
        allowed: str | None = None,
        **keywords: Any,
    ) -> Any:
        tabs.append(tab(**(options or {})))
        tabs[-1].allowed = allowed
        widgets.append(host.show(tabs[-1].page, Inspector, source, **keywords))
        return widgets[-1], tabs[-1].page

    yield make
    assert [] == [
        text
        for one in tabs
        for text in one.complaints
        if one.allowed is None or one.allowed not in text
    ]
    for widget in widgets:
        host.kernel.run(widget.close)


@pytest.fixture(scope="session")
def axe() -> Callable[[Page], list[Any]]:
    """A function that returns axe-core's violations on a page, with the elements concerned."""
    from demo_browser import axe_runner

    return axe_runner()


@pytest.fixture
def figure(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """A function that puts a measured figure into the summary of the run."""
    return pytestconfig.stash.setdefault(_figures, []).append


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show the measured figures."""
    figures = config.stash.get(_figures, [])
    if figures:
        terminalreporter.section("widget, measured")
        for line in figures:
            terminalreporter.write_line(line)
