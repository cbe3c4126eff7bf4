"""The assembled site on a local server, and Chromium to look at it.

Opening the page starts a Python, so most tests share one tab and begin with an empty drawing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

_HERE = Path(__file__).resolve().parent
# Neither folder is a package: one is a script's, the other is this one.
sys.path[:0] = [str(_HERE.parent.parent / "web-demo"), str(_HERE)]

from assembler.site import DEMO, assemble  # noqa: E402  # see above
from demo_browser import Demo, axe_runner, shared_chromium  # noqa: E402
from serve import serving  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

_figures = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the assembled site, made if its inputs have changed."""
    folder = DEMO / "_site"
    assemble(folder, print)
    return folder


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address of the site, served on this machine."""
    with serving(site) as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium; each context of it is a fresh profile."""
    with shared_chromium() as running:
        yield running


class Watched(Demo):
    """A tab whose every request and complaint is written down."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.context.on("console", self._console)
        self.context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        super().__init__(self.context.new_page())

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")


@pytest.fixture
def new_demo(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """A function that makes a tab in a fresh profile; keywords are playwright's context options."""
    made: list[Watched] = []

    def make(**options: Any) -> Watched:
        made.append(Watched(browser, **options))
        return made[-1]

    yield make
    for demo in made:
        demo.context.close()


@pytest.fixture(scope="session")
def shared_demo(browser: Browser, address: str) -> Iterator[Watched]:
    """One tab with a touch screen, opened cold, with Python running."""
    demo = Watched(browser, viewport={"width": 1100, "height": 900}, has_touch=True)
    demo.open(address)
    demo.wait_until_ready()
    yield demo
    demo.context.close()


@pytest.fixture
def demo(shared_demo: Watched) -> Watched:
    """The shared tab with an empty drawing."""
    shared_demo.page.set_viewport_size({"width": 1100, "height": 900})
    shared_demo.page.emulate_media(color_scheme="light")
    shared_demo.page.mouse.up()
    shared_demo.page.evaluate("document.activeElement.blur()")
    shared_demo.clear()
    return shared_demo


@pytest.fixture(scope="session")
def axe() -> Callable[[Page], list[Any]]:
    """A function that returns axe-core's violations on a page, with the elements concerned."""
    return axe_runner()


@pytest.fixture
def figure(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """A function that puts a measured figure into the summary of the run."""
    return pytestconfig.stash.setdefault(_figures, []).append


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show the measured figures, which no test asserts: they depend on the machine."""
    figures = config.stash.get(_figures, [])
    if figures:
        terminalreporter.section("web demo, measured")
        for line in figures:
            terminalreporter.write_line(line)
