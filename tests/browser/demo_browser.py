"""Chromium as the browser tests and `pictures.py` start it, and a page's few words to them."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING, Any, Final

from playwright.sync_api import expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

__all__ = ["FLAGS", "Demo", "axe_runner", "chromium", "find_chromium", "shared_chromium"]

FLAGS: Final = (
    "--no-sandbox",  # tests run as root in containers
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No name but this machine's resolves: a request to anywhere else fails, whatever makes it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# On a busy machine of two cores Python may take this long; nothing waits longer than it has to.
_PATIENCE_MS: Final = 60_000


def find_chromium() -> str:
    """Return the path of the system's Chromium.

    Raises:
        RuntimeError: If there is none; the message says how to get it.
    """
    for name in _NAMES:
        path = shutil.which(name)
        if path:
            return path
    raise RuntimeError(
        "the browser tests need Chromium, and none of "
        f"{', '.join(_NAMES)} is on the PATH. On Debian and Ubuntu run: "
        "sh tests/browser/install-chromium.sh"
    )


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium with a fresh profile while the block runs."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


_shared: list[Any] = []  # the browser, what ends it, and how many use it


@contextlib.contextmanager
def shared_chromium() -> Iterator[Browser]:
    """Give the one Chromium of a run of tests, which ends with its last user.

    Playwright can be started once in a thread, and several folders of tests need it.
    """
    if not _shared:
        stack = contextlib.ExitStack()
        _shared[:] = [stack.enter_context(chromium()), stack, 0]
    _shared[2] += 1
    try:
        yield _shared[0]
    finally:
        _shared[2] -= 1
        if not _shared[2]:
            _shared[1].close()
            _shared.clear()


class Demo:
    """The MNIST page in one tab, in the terms of someone who uses it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.pad = page.locator("#pad")
        self.digit = page.locator("#digit")
        self.best_bar = page.locator("#bars .best")

    def open(self, address: str) -> None:
        """Go to the page of the site at `address` without waiting for Python."""
        self.page.goto(f"{address}mnist.html")

    def wait_until_ready(self) -> None:
        """Wait until Python runs; fail at once, with the page's own words, when it cannot."""
        self.page.wait_for_selector(
            "html[data-state=ready], html[data-state=failed]",
            state="attached",
            timeout=_PATIENCE_MS,
        )
        if self.page.get_attribute("html", "data-state") == "failed":
            raise AssertionError(f"the page failed: {self.trouble()}")

    def trouble(self) -> str:
        """Return what the page says went wrong, with its details."""
        return " ".join((self.page.text_content("#trouble") or "").split())

    def evaluate(self, body: str, argument: Any = None) -> Any:
        """Run `body` in the page, with the page's `drawing` and the `argument`."""
        return self.page.evaluate(
            "async (argument) => {"
            "const { drawing } = await import(new URL('app/main.mjs', document.baseURI).href);"
            f"{body}"
            "}",
            argument,
        )

    def clear(self) -> None:
        """Empty the drawing and wait for the empty answer."""
        self.evaluate("drawing.clear();")
        self.wait_for_answer()

    def wait_for_answer(self) -> None:
        """Wait until the network has answered about the drawing as it is now."""
        revision = self.evaluate("return drawing.revision;")
        expect(self.digit).to_have_attribute("data-revision", str(revision), timeout=_PATIENCE_MS)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the point of the tab at (x, y) of the pad, both from 0 to 1."""
        box = self.pad.bounding_box()
        assert box is not None
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def stroke(self, *points: tuple[float, float], release: bool = True) -> None:
        """Draw through `points` of the pad with the mouse."""
        mouse = self.page.mouse
        mouse.move(*self.at(*points[0]))
        mouse.down()
        for point in points[1:]:
            mouse.move(*self.at(*point), steps=5)
        if release:
            mouse.up()

    def ink(self) -> int:
        """Return how many pixels of the network's view of the drawing have ink."""
        count: int = self.evaluate("return drawing.pixels().filter((ink) => ink > 127).length;")
        return count

    def painted(self, canvas: str) -> list[int]:
        """Return a canvas, by its id, as 28 x 28 pixels: red, green, blue and alpha of each."""
        values: list[int] = self.page.evaluate(
            """(id) => {
              const context = new OffscreenCanvas(28, 28).getContext("2d");
              context.drawImage(document.getElementById(id), 0, 0, 28, 28);
              return Array.from(context.getImageData(0, 0, 28, 28).data);
            }""",
            canvas,
        )
        return values

    def preview_ink(self) -> int:
        """Return the sum of the 28 x 28 preview's ink, as shown."""
        return sum(self.painted("preview")[3::4])

    def shares(self) -> list[float]:
        """Return the ten percentages as the bars show them; 0 where there is none."""
        texts = self.page.locator("#bars .percent").all_inner_texts()
        return [float(text.strip("<\xa0%") or 0) for text in texts]


def axe_runner() -> Callable[[Page], list[Any]]:
    """Return a function that gives axe-core's violations on a page, with the elements concerned."""
    from assembler.site import browser_test_scripts  # only this needs the assembler on the path

    script = browser_test_scripts(print)["axe.min.js"]

    def run(page: Page) -> list[Any]:
        page.evaluate(script)
        found: list[Any] = page.evaluate(
            "async () => (await axe.run()).violations.map((violation) =>"
            "  [violation.id, violation.nodes.map((node) => node.html.slice(0, 200))])"
        )
        return found

    return run
