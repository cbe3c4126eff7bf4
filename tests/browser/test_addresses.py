"""`bpk_lite.open` of an address inside a browser: ranges by its own fetch."""

from __future__ import annotations

import numpy as np
import pytest

import bpk_lite as bpk
from tests.desktop.web import serving as serving_folder

pytestmark = pytest.mark.browser

START = """async () => {
  const { loadPyodide } = await import("/pyodide/pyodide.mjs");
  globalThis.python = await loadPyodide();
  await python.loadPackage(["numpy", "cbor2", "bpk-lite"], { messageCallback: () => {} });
}"""
RUN = "async (code) => { const r = await python.runPythonAsync(code); return r?.toJs?.() ?? r; }"


@pytest.fixture(scope="module")
def web(site, tmp_path_factory):
    """A server with a pack of 8 MiB, and with Python."""
    folder = tmp_path_factory.mktemp("web")
    (folder / "pyodide").symlink_to(site / "pyodide")
    (folder / "index.html").write_text("<!doctype html><title>blank</title>")
    tensors = {f"big.{i}": np.full((512, 1024), i, "<f4") for i in range(4)}
    tensors |= {f"small.{i}": np.full(10, i, "<f4") for i in range(20)}
    bpk.save_file(tensors, folder / "m.bpk", {"task": "mnist"})
    with serving_folder(folder) as server:
        yield server


@pytest.fixture(scope="module")
def page(browser, web):
    """A page with Python on its main thread."""
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(web.address + "index.html")
    tab.evaluate(START)
    yield tab
    context.close()


@pytest.fixture(autouse=True)
def _forget(web):
    web.fault = web.allowed = None
    web.forget()


def answer(page, code):
    return page.evaluate(RUN, "import bpk_lite as bpk\n" + code)


def test_a_pack_is_opened_by_one_request_and_a_tensor_by_one_more(page, web):
    """As on a desktop."""
    code = f"""
with bpk.open("{web.address}m.bpk") as pack:
    found = [len(pack), pack.metadata["task"], float(pack["big.2"].numpy().mean())]
found
"""
    assert [24, "mnist", 2.0] == answer(page, code)
    assert 2 == len([one for one in web.requests if one[1] == "/m.bpk"])
    assert web.sent == (128 << 10) + (2 << 20)


def test_neighbours_share_a_request(page, web):
    """Twenty small tensors come by one."""
    code = (
        f'sum(float(a[0]) for a in bpk.load_file("{web.address}m.bpk", names=["small.*"]).values())'
    )
    assert sum(range(20)) == answer(page, code)
    assert 2 == len(web.requests)


def test_another_site_that_allows_it_is_read_too(page, web):
    """Its answers hide the size, which is then asked for."""
    with serving_folder(web.folder) as other:
        other.allowed = web.address.rstrip("/")
        assert 24 == answer(page, f'len(bpk.open("{other.address}m.bpk"))')
        assert ["GET", "HEAD"] == [one[0] for one in other.requests]
        other.allowed = None
        message = failure(page, f"{other.address}m.bpk")
    assert "does not allow this page (CORS)" in message


def failure(page, address):
    code = f"""
try:
    bpk.open("{address}")
except bpk.ReadError as error:
    found = str(error)
found
"""
    return answer(page, code)


def test_a_server_without_ranges_is_left_at_once(page, web):
    """The file does not come over; Python goes on."""
    web.fault = "ignores ranges"
    message = failure(page, f"{web.address}m.bpk")
    assert "gives the whole file when a part is asked for" in message
    assert "404" in failure(page, f"{web.address}none.bpk")
    assert 4 == answer(page, "2 + 2")


def test_a_file_that_changes_meanwhile_is_an_error(page, web):
    """Never bytes of two versions."""
    answer(page, f'kept = bpk.open("{web.address}m.bpk")')
    path = web.folder / "m.bpk"
    before = path.read_bytes()
    path.write_bytes(before)
    code = """
try:
    kept["big.1"].numpy()
    found = "read"
except bpk.ReadError as error:
    found = str(error)
found
"""
    assert "was changed while it was open" in answer(page, code)
