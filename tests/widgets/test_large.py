"""A hundred thousand tensors, and two gigabytes: the bounds of the issue, in Chromium.

Times are the best of a few runs: a machine that is busy with something else is not what is measured.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from checkpoints import Counted, sparse_pack
from playwright.sync_api import expect

import bpk_lite as bpk
from bpk_lite.desktop import open_source
from bpk_lite_widgets import Inspector

pytestmark = [pytest.mark.desktop, pytest.mark.browser]

FRAMES = """(step) => new Promise((done) => {
  const grid = document.querySelector(".bpk-list .bpk-grid");
  const frames = [];
  let last = performance.now();
  const next = () => {
    const now = performance.now();
    frames.push(now - last);
    last = now;
    if (frames.length < 90) {
      grid.scrollTop += step;
      requestAnimationFrame(next);
    } else done(Math.max(...frames.slice(2)));
  };
  requestAnimationFrame(next);
})"""


@pytest.fixture(scope="module")
def many():
    """A pack of 100 000 small tensors, as a large mixture of experts has them."""
    element = np.zeros(1, "f4")
    tensors = {
        f"model.layers.{at // 1000}.experts.{at // 4 % 250}.{('w1', 'w2', 'w3', 'b')[at % 4]}": element
        for at in range(100_000)
    }
    return bpk.save(tensors)


def test_a_hundred_thousand_tensors_are_drawn_in_two_seconds(show, many, figure):
    """From the front end's first line to rows on the screen, columns and all."""
    times = []
    for _ in range(3):
        _, page = show(many)
        page.locator(".bpk-list .bpk-rows .bpk-row").first.wait_for()
        times.append(page.evaluate("performance.now() - window.started"))
    figure(f"100 000 tensors: drawn after {min(times):.0f} ms (worst of three {max(times):.0f})")

    expect(page.locator(".bpk-found")).to_have_text("100,000 tensors")
    assert min(times) < 2000


def test_a_hundred_thousand_tensors_scroll_without_a_slow_frame(show, many, figure):
    """Once drawn, no frame takes more than 50 ms, in the table and in the open tree."""
    _, page = show(many)
    page.wait_for_timeout(300)
    for view in ("Table", "Tree"):
        page.get_by_role("button", name=view).click()
        if view == "Tree":
            page.get_by_label("Filter", exact=True).fill("w1")
            expect(page.locator(".bpk-found")).to_have_text("25,000 of 100,000 tensors")
        page.wait_for_timeout(300)
        worst = min(page.evaluate(FRAMES, step) for step in (600, 50_000, 600))
        figure(f"100 000 tensors, {view.lower()}: slowest frame {worst:.0f} ms")
        assert worst < 50


def test_a_hundred_thousand_names_are_filtered_as_one_types(show, many):
    """Each kind of filter answers within a few frames; regular expressions without blocking."""
    _, page = show(many)
    for kind, text, count in (
        ("text", "experts.7.w", 300),
        ("glob", "*.layers.9.*.b", 250),
        ("regex", r"layers\.(1|2)\..*w2$", 500),
    ):
        page.get_by_label("How the filter matches").select_option(kind)
        page.get_by_label("Filter", exact=True).fill(text)
        expect(page.locator(".bpk-found")).to_have_text(f"{count:,} of 100,000 tensors")


def test_the_keyboard_reaches_the_last_of_a_hundred_thousand(show, many):
    """End goes to the last row, and its index says which it is."""
    _, page = show(many)
    page.get_by_role("button", name="Table").click()
    page.locator(".bpk-list .bpk-rows .bpk-row").first.click()
    page.keyboard.press("End")

    expect(page.locator(":focus")).to_have_attribute("aria-rowindex", "100001")
    expect(page.locator(":focus")).to_be_in_viewport()


def test_two_gigabytes_open_in_a_second_and_little_of_them_is_read(host, show, tmp_path, figure):
    """Opening reads the metadata; choosing reads what the picture and the table show."""
    path = tmp_path / "sparse.bpk"
    sparse_pack(path)
    times, sources = [], []
    for _ in range(3):
        sources.append(Counted(open_source(path, limits=bpk.Limits(), backend="read")))
        start = time.perf_counter()
        host.kernel.run(Inspector(sources[-1]).close)
        made = time.perf_counter() - start
        sources[-1] = Counted(open_source(path, limits=bpk.Limits(), backend="read"))
        _, page = show(sources[-1])
        page.locator(".bpk-list .bpk-rows .bpk-row").first.wait_for()
        times.append(made + page.evaluate("performance.now() - window.started") / 1000)
    opened = sources[-1].read
    figure(f"2 GiB: shown after {min(times):.2f} s, {opened} bytes read")
    assert min(times) < 1
    assert opened < 64 << 10

    page.locator(".bpk-list .bpk-row", has_text="weight").first.click()
    page.locator(".bpk-numbers td").nth(1).wait_for()
    expect(page.locator(".bpk-canvas canvas")).to_have_attribute("width", "512")
    expect(page.locator(".bpk-statistics")).to_contain_text("reads 64 MiB")
    assert sources[-1].read - opened < 512 * 4096 * 4 + (1 << 18)
