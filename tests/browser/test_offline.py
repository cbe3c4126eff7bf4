"""After the first visit the page needs no network."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
from playwright.sync_api import expect
from serve import serving

pytestmark = pytest.mark.browser


def test_the_page_works_offline_after_the_first_visit(new_demo, address, figure):
    """The service worker has every file: a reload without a network reads a digit."""
    demo = new_demo()
    demo.open(address)
    demo.wait_until_ready()
    expect(demo.page.locator("#offline")).to_have_text("Works offline", timeout=60_000)

    demo.context.set_offline(True)
    demo.page.reload()
    demo.wait_until_ready()
    demo.page.locator("#samples button").nth(5).click()
    demo.wait_for_answer()

    expect(demo.digit).to_have_text("5")
    ready = demo.page.evaluate("performance.getEntriesByName('ready')[0].startTime")
    figure(f"second visit, offline: interactive after {ready / 1000:.2f} s")
    assert demo.complaints == []


def publish(site, style):
    """Put another stylesheet into `site`, as a new version of it."""
    (site / "style.css").write_bytes(style)
    document = json.loads((site / "files.json").read_bytes())
    entry = next(file for file in document["files"] if file["name"] == "style.css")
    entry |= {"size": len(style), "sha256": hashlib.sha256(style).hexdigest()}
    document["version"] = entry["sha256"]
    (site / "files.json").write_text(json.dumps(document))
    return document["version"]


def test_a_new_version_replaces_the_kept_one_at_the_next_reload(new_demo, site, tmp_path):
    """A visit never mixes versions: it says that there is a newer one, and a reload shows it."""
    copy = shutil.copytree(site, tmp_path / "site")
    with serving(copy) as address:
        demo = new_demo()
        demo.open(address)
        expect(demo.page.locator("#offline")).to_have_text("Works offline", timeout=60_000)
        style = (copy / "style.css").read_bytes()
        version = publish(copy, style + b"h1 { color: rgb(1, 2, 3); }")

        demo.page.reload()
        heading = demo.page.locator("h1")
        expect(demo.page.locator("#offline")).to_contain_text("newer version", timeout=60_000)
        expect(heading).not_to_have_css("color", "rgb(1, 2, 3)")

        demo.page.reload()
        expect(heading).to_have_css("color", "rgb(1, 2, 3)")
        assert demo.page.evaluate("caches.keys()") == [f"bpk-lite-{version}"]
