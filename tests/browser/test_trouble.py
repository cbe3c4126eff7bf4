"""When something fails the page says what, and what to do."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture
def failing(new_demo, address):
    """A function that opens the page with requests for a pattern answered by a handler."""

    def open_with(pattern, handler):
        demo = new_demo(service_workers="block")
        demo.context.route(pattern, handler)
        demo.open(address)
        expect(demo.page.locator("#trouble")).to_be_visible(timeout=60_000)
        assert demo.page.get_attribute("html", "data-state") == "failed"
        expect(demo.page.locator("#again")).to_be_visible()
        return demo.trouble()

    return open_with


def test_a_damaged_wheel_is_named(failing):
    """Pyodide itself would only log this and go on without the package."""

    def damage(route):
        response = route.fetch()
        body = bytearray(response.body())
        body[len(body) // 2] ^= 1
        route.fulfill(response=response, body=bytes(body))

    trouble = failing("**/cbor2-*.whl", damage)

    assert "A file is not the right one" in trouble
    assert "cbor2-6.3.0" in trouble


def test_a_missing_file_is_named(failing):
    """The status of the server's answer is among the details."""
    trouble = failing("**/python_stdlib.zip", lambda route: route.fulfill(status=404))

    assert "A file did not arrive" in trouble
    assert "python_stdlib.zip" in trouble
    assert "404" in trouble


def test_an_interrupted_download_is_named(failing):
    """A connection that breaks off is told from a damaged file."""
    trouble = failing("**/numpy-*.whl", lambda route: route.abort("connectionreset"))

    assert "A file did not arrive" in trouble
    assert "numpy-2" in trouble


def test_truncated_webassembly_is_named(failing):
    """It is compiled while it arrives, so its size is what is checked."""

    def cut(route):
        response = route.fetch()
        route.fulfill(response=response, body=response.body()[:1000])

    trouble = failing("**/*.wasm", cut)

    assert "pyodide.asm.wasm" in trouble
    assert "has 1000 bytes" in trouble


def test_a_worker_that_cannot_start_is_reported(failing):
    """Without its worker the page has no Python at all."""
    trouble = failing("**/worker.mjs", lambda route: route.fulfill(status=500))

    assert "The background worker failed" in trouble


def test_a_drawing_that_python_refuses_does_not_stop_the_worker(new_demo, address):
    """The error has Python's own words, and the next drawing is answered."""
    demo = new_demo(service_workers="block")
    demo.page.route("**/app/main.mjs", lambda route: route.fulfill(status=404))  # only the worker
    demo.open(address)

    trouble, answer = demo.page.evaluate(
        """async () => {
          const script = new URL("app/worker.mjs", document.baseURI);
          const worker = new Worker(script, { type: "module" });
          const next = (type) => new Promise((resolve) => {
            worker.addEventListener("message", function take({ data }) {
              if (data.type !== type) return;
              worker.removeEventListener("message", take);
              resolve(data);
            });
          });
          const ask = (revision, width) => worker.postMessage({
            type: "classify",
            question: { revision, pixels: new Uint8Array(100).fill(255), width, height: 10 },
          });
          await next("ready");
          ask(7, 11);
          const trouble = await next("trouble");
          ask(8, 10);
          return [trouble, await next("answer")];
        }"""
    )

    assert trouble["revision"] == 7
    assert trouble["trouble"]["kind"] == "model"
    assert "the buffer has 100" in trouble["trouble"]["details"]
    assert answer["answer"]["revision"] == 8
