"""How the page starts: progress, figures, no word to any other machine."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.browser


def test_a_cold_start_is_timed_and_shown(shared_demo, figure):
    """The page tells how long it took. Reported only: a machine has the speed it has."""
    summary = shared_demo.page.locator("#summary").inner_text()
    ready = shared_demo.page.evaluate("performance.getEntriesByName('ready')[0].startTime")

    figure(f"cold start in a new profile: interactive after {ready / 1000:.2f} s ({summary})")
    assert re.match(r"[\d.]+ MB ready in [\d.]+ s · Python 3\.14", summary)


def test_progress_is_shown_for_every_file(shared_demo, site):
    """Each file of the runtime has a line, and each line is complete."""
    bars = shared_demo.page.locator("#files progress")
    complete = bars.evaluate_all("(bars) => bars.map((bar) => bar.value === bar.max)")
    shipped = [path for path in (site / "pyodide").iterdir() if path.suffix != ".json"]

    assert [True] * len(shipped) == complete


def test_no_request_leaves_the_machine(shared_demo, address):
    """Everything the tab and its worker ask for comes from the site itself."""
    assert len(shared_demo.requests) > 20
    assert {urlsplit(address).netloc} == {urlsplit(url).netloc for url in shared_demo.requests}


def test_the_console_stays_clean(shared_demo):
    """No error, no warning, no violation of the content policy."""
    assert shared_demo.complaints == []


def test_the_policy_is_sent_and_written_into_the_page(shared_demo, address):
    """The header and the page's own policy agree; only the header can forbid framing."""
    response = shared_demo.page.request.get(address)
    header = response.headers["content-security-policy"].split("; ")
    page = shared_demo.page.get_attribute("meta[http-equiv]", "content").split("; ")

    assert [*page, "frame-ancestors 'none'"] == header
    assert "default-src 'none'" in page
    assert not [rule for rule in page if "unsafe-inline" in rule or "'unsafe-eval'" in rule]


def test_the_list_of_files_is_the_folder(site):
    """files.json names every file that the page may load, with its size."""
    listed = json.loads((site / "files.json").read_bytes())["files"]
    present = {path.relative_to(site).as_posix(): path.stat().st_size
               for path in site.rglob("*") if path.is_file()}  # fmt: skip

    assert {"_headers", "files.json", "sw.js"} == present.keys() - {f["name"] for f in listed}
    assert all(present[file["name"]] == file["size"] for file in listed)


def test_the_trimmed_lock_names_only_what_ships(site):
    """With a package too many, Pyodide would ask its content network for it."""
    lock = json.loads((site / "pyodide" / "pyodide-lock.json").read_bytes())
    wheels = {path.name for path in (site / "pyodide").glob("*.whl")}

    assert wheels == {package["file_name"] for package in lock["packages"].values()}
