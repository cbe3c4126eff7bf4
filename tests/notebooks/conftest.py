"""Chromium, and how a notebook is run in JupyterLab's page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE.parent.parent / "web-demo"), str(_HERE.parent / "browser")]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

# until the open notebook has a kernel that answers
_READY = """async () => {
  const app = globalThis.jupyterapp;
  await app.restored;
  for (let turn = 0; turn < 900; turn++) {
    const panel = app.shell.currentWidget;
    if (panel?.sessionContext && panel.context) {
      await panel.context.ready;
      await panel.sessionContext.ready;
      const kernel = panel.sessionContext.session?.kernel;
      if (kernel) {
        await kernel.info;
        if (kernel.status === "idle") return true;
      }
    }
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error("no kernel answers");
}"""
_RUN = "void globalThis.jupyterapp.commands.execute('notebook:run-all-cells')"
# what the cells printed, and what went wrong, once all have run
_OUTPUTS = """() => {
  const cells = [...globalThis.jupyterapp.shell.currentWidget.content.model.cells]
    .filter((cell) => cell.type === "code");
  if (cells.some((cell) => cell.executionCount === null)) return null;
  return cells.flatMap((cell) => cell.outputs.toJSON());
}"""


class Lab:
    """A page of JupyterLab with a notebook open.

    Attributes:
        page: the page.
        outside: addresses of other machines that it asked for.
    """

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context(viewport={"width": 1100, "height": 900})
        self.page: Page = self.context.new_page()
        self.outside: list[str] = []
        self.page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")):
            self.outside.append(request.url)

    def run_all(self, address: str) -> None:
        """Open a notebook and start all its cells."""
        self.page.goto(address)
        self.page.wait_for_selector(".jp-NotebookPanel .jp-CodeCell", timeout=120_000)
        self.page.evaluate(_READY)
        self.page.evaluate(_RUN)

    def outputs(self) -> list[dict[str, Any]]:
        """Return what the cells gave, once all of them have run."""
        handle = self.page.wait_for_function(_OUTPUTS, timeout=120_000, polling=200)
        found: list[dict[str, Any]] = handle.json_value()
        return found


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A page in a fresh profile."""
    from demo_browser import shared_chromium

    with shared_chromium() as browser:
        made = Lab(browser)
        yield made
        made.context.close()
