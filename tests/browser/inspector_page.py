"""The inspector page in the terms of someone who uses it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["InspectorPage", "proportional_memory"]

_PATIENCE = 60_000  # milliseconds; nothing waits longer than it has to


class InspectorPage:
    """The page in a tab of its own profile; all it asks for and complains about is written down."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.context = browser.new_context(
            **({"viewport": {"width": 1200, "height": 850}} | options)
        )
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        self.context.on("console", self._console)
        self.choices = 0

    def _console(self, message: Any) -> None:
        # Most tests keep the service worker out, which the driver says.
        if message.type in ("error", "warning") and "blocked by Playwright" not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")

    def visit(self, address: str, query: str = "") -> None:
        """Go to the page and wait until Python runs."""
        self.choices = 1 if query else 0
        self.page.goto(f"{address}inspector.html{query}")
        self.page.wait_for_selector(
            "html:not([data-state=loading])", state="attached", timeout=_PATIENCE
        )

    def choose(self, path: Any, field: str | None = None) -> None:
        """Choose a file, without waiting for it."""
        self.choices += 1
        shown = self.page.locator("#actions").is_visible()
        self.page.set_input_files(field or ("#another" if shown else "#file"), str(path))

    def open(self, path: Any, field: str | None = None) -> None:
        """Choose a file and wait until it is drawn."""
        self.choose(path, field)
        self.wait()

    def wait(self) -> None:
        """Wait until the last choice is drawn."""
        expect(self.page.locator("#inspector")).to_have_attribute(
            "data-shown", str(self.choices), timeout=_PATIENCE
        )

    def drop(self, path: Path, x: float = 300, y: float = 300) -> None:
        """Drop a real file from the disk."""
        self.choices += 1
        session = self.context.new_cdp_session(self.page)
        data = {"items": [], "files": [str(path.absolute())], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            session.send("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": data})

    def trouble(self) -> str:
        """Wait for trouble and return what is said of it."""
        expect(self.page.locator("#trouble")).to_be_visible(timeout=_PATIENCE)
        return self.page.locator("#trouble").inner_text()

    def evaluate(self, body: str, argument: Any = None) -> Any:
        """Run `body` in the page, with its `connection` to the worker."""
        return self.page.evaluate(
            "async (argument) => {"
            "const { connection } = await import(new URL('inspector/main.mjs', document.baseURI).href);"
            f"{body}"
            "}",
            argument,
        )

    def read(self) -> int:
        """Return how many bytes have been asked for since the page was loaded."""
        counted: int = self.evaluate("return (await connection.counted()).bytes;")
        return counted

    def row(self, name: str) -> Any:
        """Return the row of a tensor in the list."""
        return self.page.locator(".bpk-list .bpk-rows").get_by_role(
            "row", name=re.compile(f"^{re.escape(name)} ")
        )

    def milliseconds(self) -> float:
        """Return how long the last choice took, from choosing to drawn."""
        took: float = self.page.evaluate(
            "performance.getEntriesByName('shown').at(-1).startTime - performance.getEntriesByName('chosen').at(-1).startTime"
        )
        return took


def proportional_memory() -> int:
    """Return the memory of Chromium's renderers in bytes, shared pages by their share (PSS)."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if b"--type=renderer" not in (folder / "cmdline").read_bytes():
                continue
            rollup = (folder / "smaps_rollup").read_text()
        except OSError:
            continue
        total += int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1]) << 10  # type: ignore[index]
    assert total or os.name != "posix"
    return total
