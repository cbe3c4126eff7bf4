"""Take the pictures of the page for ``docs/pictures``: ``python tests/browser/pictures.py``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

_PROJECT: Final = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(_PROJECT / "web-demo"))

from assembler.site import DEMO, assemble  # noqa: E402  # not a package, see above
from demo_browser import Demo, chromium  # noqa: E402
from playwright.sync_api import expect  # noqa: E402
from serve import serving  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_TARGET: Final = _PROJECT / "docs" / "pictures"
# A four whose top nearly closes: the network hesitates, and the bars have something to show.
_FOUR: Final = (
    ((0.5, 0.2), (0.4, 0.32), (0.35, 0.47), (0.42, 0.53), (0.54, 0.52), (0.64, 0.47)),
    ((0.62, 0.24), (0.63, 0.4), (0.61, 0.6), (0.57, 0.82)),
)
_DESKTOP: Final = {"viewport": {"width": 1100, "height": 970}, "device_scale_factor": 2}
_PHONE: Final = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}


def main() -> None:
    """Take all pictures."""
    _TARGET.mkdir(parents=True, exist_ok=True)
    assemble(DEMO / "_site", print)
    with serving(DEMO / "_site") as address, chromium() as browser:
        for name, options in {
            "mnist-light": _DESKTOP | {"color_scheme": "light"},
            "mnist-dark": _DESKTOP | {"color_scheme": "dark"},
            "mnist-phone": _PHONE | {"color_scheme": "light"},
        }.items():
            _take(browser, address, _TARGET / f"{name}.png", options)


def _take(browser: Browser, address: str, target: Path, options: dict[str, Any]) -> None:
    context = browser.new_context(**options, reduced_motion="reduce")
    demo = Demo(context.new_page())
    demo.open(address)
    demo.wait_until_ready()
    for points in _FOUR:
        demo.stroke(*points)
    demo.wait_for_answer()
    demo.page.mouse.move(1, 1)
    expect(demo.page.locator("#offline")).to_have_text("Works offline", timeout=60_000)
    demo.page.screenshot(path=target)
    print(f"{target}: read as {demo.digit.inner_text()}, {max(demo.shares())} %")
    context.close()


if __name__ == "__main__":
    main()
