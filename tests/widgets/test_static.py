"""What notebooks show without a widget, and the page that `bpk embed` makes, in Chromium."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from checkpoints import HOSTILE, pack

import bpk_lite as bpk
from bpk_lite.inspect import diff, summarize, tensor_stats

pytestmark = [pytest.mark.desktop, pytest.mark.browser]


@pytest.fixture(scope="module")
def hostile():
    """A pack whose every text is an attack."""
    tensors = {f"{name}{at}": np.ones((2, 2), "f4") for at, name in enumerate(HOSTILE)}
    text = {name: name for name in HOSTILE}
    return pack(tensors, metadata=text, scalars=dict.fromkeys(HOSTILE, 1))


def faces(blob):
    """Return the HTML of everything that shows itself."""
    opened = bpk.open(blob)
    other = bpk.open(bpk.save({"w": np.zeros(3)}))
    tensor = next(iter(opened.values()))
    shown = (opened, tensor, summarize(opened), tensor_stats(tensor), diff(opened, other))
    return "".join(f"<section>{one._repr_html_()}</section>" for one in shown)


def test_hostile_texts_do_nothing_in_static_html(tab, hostile):
    """No dialog, no request, no script, no element of their making; the text is there to read."""
    page = tab().page
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.set_content(f"<!doctype html><html lang=en><title>faces</title>{faces(hostile)}")
    page.wait_for_timeout(300)
    assert ([], [], None) == (asked, said, page.evaluate("window.ran"))
    assert 0 == page.locator("script, img, iframe, svg[onload], [onerror], [onload]").count()
    assert page.get_by_text("onerror").count() > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_static_html_is_accessible(tab, axe, scheme):
    """In both colour schemes, as a notebook embeds it: on its background, in its colour."""
    page = tab(color_scheme=scheme).page
    colours = "background:#111;color:#eee" if scheme == "dark" else "background:#fff;color:#111"
    blob = bpk.save({"layer.0.weight": np.ones((3, 4)), "layer.0.bias": np.ones(4)}, {"k": "v"})
    page.set_content(
        f"<!doctype html><html lang=en><title>faces</title>"
        f"<body style='{colours}'><main><h1>Output</h1>{faces(blob)}</main>"
    )
    assert [] == axe(page)


def test_the_embedded_page_is_inert_and_holds_the_pack(tab, hostile, tmp_path):
    """Opened from disk under any policy: no script, and a download with the same bytes."""
    (tmp_path / "m.bpk").write_bytes(hostile)
    code = "import sys; from bpk_lite.cli import main; sys.exit(main())"
    subprocess.run(
        [sys.executable, "-c", code, "embed", "m.bpk", "--html", "m.html"], check=True, cwd=tmp_path
    )
    page = tab().page
    said = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.goto((tmp_path / "m.html").as_uri())
    page.wait_for_timeout(300)
    assert ([], 0) == (said, page.locator("script, img, iframe").count())
    assert page.evaluate("window.ran") is None
    with page.expect_download() as download:
        page.locator("a[download]").click()
    assert hostile == download.value.path().read_bytes()
