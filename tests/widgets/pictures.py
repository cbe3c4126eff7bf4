"""Take the pictures of the widget and the inspector page for ``docs/pictures``.

``python tests/widgets/pictures.py``
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

_HERE: Final = Path(__file__).resolve().parent
_PROJECT: Final = _HERE.parent.parent
sys.path[:0] = [str(_PROJECT / "web-demo"), str(_PROJECT / "tests" / "browser"), str(_HERE)]

from assembler.site import DEMO, assemble  # noqa: E402  # not a package, see above
from demo_browser import chromium  # noqa: E402
from host import Host  # noqa: E402
from inspector_page import InspectorPage  # noqa: E402
from serve import serving  # noqa: E402

import bpk_lite as bpk  # noqa: E402
from bpk_lite_widgets import Inspector  # noqa: E402

_TARGET: Final = _PROJECT / "docs" / "pictures"
_CHOSEN: Final = "encoder.layers.3.attention.query.weight"
_WIDE: Final = {"viewport": {"width": 1180, "height": 1060}, "device_scale_factor": 2}
_PHONE: Final = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}


def main() -> None:
    """Take all pictures."""
    assemble(DEMO / "_site", print)
    host = Host()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        path, other = (Path(folder) / name for name in ("encoder.bpk", "encoder-epoch-2.bpk"))
        first = _model()
        _save(first, path)
        _save(_trained(first), other)
        for name, scheme, options in (
            ("inspector-light", "light", _WIDE),
            ("inspector-dark", "dark", _WIDE),
            ("inspector-phone", "light", _PHONE),
        ):
            page = browser.new_context(**options, color_scheme=scheme).new_page()
            host.show(page, Inspector, path, selected=_CHOSEN)
            page.locator(".bpk-histogram svg").wait_for()
            page.locator(".bpk-numbers td").first.wait_for(state="attached")
            page.locator(".bpk-inspector").evaluate(
                "(element) => element.style.setProperty('--bpk-height', '830px')"
            )
            page.wait_for_timeout(200)
            if options is _WIDE:
                page.locator(".bpk-inspector").screenshot(path=_TARGET / f"{name}.png")
            else:
                page.locator(".bpk-detail").scroll_into_view_if_needed()
                page.evaluate("scrollTo(0, 120)")
                page.screenshot(path=_TARGET / f"{name}.png")
            page.context.close()
        page = browser.new_context(**_WIDE, color_scheme="light").new_page()
        host.show(page, Inspector, path, compare=other)
        page.get_by_role("tab", name="Compare").click()
        page.get_by_role("button", name="Compare values").click()
        page.get_by_text("Values compared").wait_for()
        page.locator(".bpk-inspector").screenshot(path=_TARGET / "inspector-compare.png")
        page.context.close()
        with serving(DEMO / "_site") as address:
            for name, scheme, options in (
                ("page-light", "light", {"viewport": {"width": 1180, "height": 820}}),
                ("page-dark", "dark", {"viewport": {"width": 1180, "height": 820}}),
                ("page-phone", "light", _PHONE),
            ):
                tab = InspectorPage(
                    browser, **({"device_scale_factor": 2} | options), color_scheme=scheme
                )
                tab.visit(address)
                tab.open(path)
                tab.row("embeddings.weight").click()
                tab.page.locator(".bpk-histogram svg").wait_for()
                tab.page.wait_for_timeout(400)
                tab.page.screenshot(path=_TARGET / f"{name}.png")
                tab.context.close()
    host.close()
    print(f"pictures are in {_TARGET}")


def _model() -> dict[str, Any]:
    """Return the arrays of a small encoder, with some structure to see."""
    random = np.random.default_rng(3)
    wave = np.sin(np.arange(128) / 9.0) * 0.06
    made: dict[str, Any] = {"embeddings.weight": random.normal(0, 0.02, (1024, 128)).astype("f4")}
    made["embeddings.weight"][:, ::17] *= 3
    for layer in range(6):
        prefix = f"encoder.layers.{layer}."
        for name in ("query", "key", "value", "output"):
            weight = random.normal(0, 0.04, (128, 128)) + np.add.outer(wave, wave[::-1])
            made[f"{prefix}attention.{name}.weight"] = weight.astype("f4")
            made[f"{prefix}attention.{name}.bias"] = random.normal(0, 0.01, 128).astype("f4")
        made[f"{prefix}feed_forward.inner.weight"] = random.normal(0, 0.04, (128, 512)).astype("f2")
        made[f"{prefix}feed_forward.outer.weight"] = random.normal(0, 0.04, (512, 128)).astype("f2")
        made[f"{prefix}norm.gamma"] = (1 + random.normal(0, 0.02, 128)).astype("f4")
    made["head.weight"] = random.normal(0, 0.05, (128, 9)).astype("f4")
    made["tokens_seen"] = np.array([81_920_000])
    return made


def _trained(first: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays after some more training, one of them gone, one new, one of another type."""
    random = np.random.default_rng(4)
    made = {
        name: array
        if name.startswith("embeddings") or array.dtype.kind != "f"
        else (array + random.normal(0, 1e-3, array.shape)).astype(array.dtype)
        for name, array in first.items()
    }
    made["head.bias"] = np.zeros(9, "f4")
    made["tokens_seen"] = np.array([163_840_000])
    made["encoder.layers.5.norm.gamma"] = made["encoder.layers.5.norm.gamma"].astype("f2")
    return made


def _save(arrays: dict[str, Any], path: Path) -> None:
    bpk.save_file(
        arrays, path, {"task": "token classification", "vocabulary": "1024"}, scalars={"epoch": 1}
    )


if __name__ == "__main__":
    main()
