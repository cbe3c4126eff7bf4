"""embed: a pack as part of a Python package, and of a page."""

from __future__ import annotations

import ast
import base64
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.pack import Writer
from tests.cli.here import run
from tests.inspect.test_html import ATTRIBUTES, ELEMENTS, HOSTILE, Parsed

pytestmark = pytest.mark.desktop

WEIGHT = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a pack in it, to work in."""
    monkeypatch.chdir(tmp_path)
    bpk.save_file({"fc.weight": WEIGHT}, "model.bpk", {"task": "mnist"})
    return tmp_path


def loaded(path, name="my_weights"):
    """Import the package in a fresh interpreter and return what it gives."""
    code = (
        f"import {name} as w\n"
        "with w.load() as pack:\n"
        "    print(pack['fc.weight'].numpy().tolist(), pack.metadata['task'], w.__all__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd="/",
        env={"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert "" == done.stderr
    return done.stdout.strip()


def test_a_package_gives_its_pack_from_wherever_it_is(here):
    """From a folder and from a zip; the pack in it is the file, byte for byte."""
    assert (0, "", "my_weights/weights.bpk\nmy_weights/__init__.py\n") == run(
        "embed", "model.bpk", "--package", "my_weights"
    )
    assert Path("model.bpk").read_bytes() == Path("my_weights/weights.bpk").read_bytes()
    expected = "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] mnist ['load']"
    assert expected == loaded(here)
    with zipfile.ZipFile("w.zip", "w") as archive:
        for path in here.glob("my_weights/*.*"):
            archive.write(path, f"my_weights/{path.name}")
    assert expected == loaded(here / "w.zip")


def test_a_large_pack_is_copied_by_windows(here):
    """20 MiB, byte for byte."""
    bpk.save_file({"w": np.arange(20 << 17, dtype="i8")}, "large.bpk")
    run("embed", "large.bpk", "--package", "large")
    assert Path("large.bpk").read_bytes() == Path("large/weights.bpk").read_bytes()


def test_the_module_is_the_same_for_every_pack(here):
    """Nothing of the file is in the code, so nothing of it can be run."""
    bpk.save_file({'"""\nimport os': WEIGHT}, "x'''\"\"\".bpk")
    run("embed", "model.bpk", "--package", "one")
    run("embed", "x'''\"\"\".bpk", "--package", "two")
    code = Path("one/__init__.py").read_text()
    assert code == Path("two/__init__.py").read_text()
    assert ["Expr", "ImportFrom", "Assign", "FunctionDef"] == [
        type(node).__name__ for node in ast.parse(code).body
    ]


@pytest.mark.parametrize("name", ["", "a-b", "a.b", "../x", "1x", "class", "ключ", "a b", "/tmp/x"])
def test_a_name_that_cannot_be_imported_is_refused(here, name):
    """Before anything is written."""
    status, _, err = run("embed", "model.bpk", "--package", name)
    assert (2, 1) == (status, err.count("\n"))
    assert ["model.bpk"] == [path.name for path in here.iterdir()]


def test_a_package_of_someone_else_is_never_replaced(here):
    """Without `--overwrite` nothing is; with it, only what was made here."""
    run("embed", "model.bpk", "--package", "mine")
    bpk.save_file({"fc.weight": WEIGHT + 1}, "other.bpk", {"task": "mnist"})
    status, _, err = run("embed", "other.bpk", "--package", "mine")
    assert (2, True) == (status, "--overwrite" in err)
    assert 0 == run("embed", "other.bpk", "--package", "mine", "--overwrite")[0]
    assert "[[1.0, 2.0, 3.0]" in loaded(here, "mine")
    Path("theirs").mkdir()
    Path("theirs/__init__.py").write_text("secret = 1\n")
    status, _, err = run("embed", "model.bpk", "--package", "theirs", "--overwrite")
    assert (2, True) == (status, "not made by `bpk embed`" in err)
    assert ["__init__.py"] == [path.name for path in Path("theirs").iterdir()]
    assert "secret = 1\n" == Path("theirs/__init__.py").read_text()
    Path("theirs/__init__.py").write_bytes(b"\xff\xfe")
    assert 2 == run("embed", "model.bpk", "--package", "theirs", "--overwrite")[0]
    Path("fresh").mkdir()
    assert 0 == run("embed", "model.bpk", "--package", "fresh", "--overwrite")[0]


def test_other_formats_become_a_pack_first(here):
    """A SafeTensors file in a package; and `--to` says where."""
    run("convert", "model.bpk", "model.safetensors")
    Path("src").mkdir()
    status, out, err = run("embed", "model.safetensors", "--package", "w", "--to", "src", "--json")
    assert (0, {"written": ["src/weights.bpk".replace("src/", "src/w/"), "src/w/__init__.py"]}, "") == (
        status, json.loads(out), err,
    )  # fmt: skip
    assert "mnist" in loaded(here / "src", "w")


def test_one_of_the_two_must_be_asked_for(here):
    """Neither and both are errors."""
    for args in ([], ["--package", "x", "--html", "x.html"]):
        status, _, err = run("embed", "model.bpk", *args)
        assert (2, True) == (status, "--package NAME or --html OUT" in err)


def page(path="page.html"):
    """Return a page, checked to hold nothing but our own elements."""
    text = Path(path).read_text()
    assert text.startswith('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">')
    body = text.removeprefix("<!doctype html>\n")
    voids = re.sub(r"<(meta [^>]*)>", r"<\1></meta>", body)
    found = Parsed(voids)
    assert found.elements <= ELEMENTS | {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "h1",
        "p",
        "a",
    }
    assert found.attributes <= ATTRIBUTES | {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "href",
        "download",
    }
    return text, found.text


def test_a_page_shows_the_pack_and_holds_it(here):
    """The summary, and the file as a download; a policy that lets nothing run or load."""
    assert (0, "", "page.html\n") == run("embed", "model.bpk", "--html", "page.html")
    text, words = page()
    for word in ("model.bpk", "fc.weight", "mnist", "F32 [2, 3]", "Download the pack"):
        assert word in words
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    blob = re.search(
        r'href="data:application/octet-stream;base64,([^"]*)" download="model.bpk"', text
    )[1]
    assert Path("model.bpk").read_bytes() == base64.b64decode(blob)
    status, _, err = run("embed", "model.bpk", "--html", "page.html")
    assert (2, True) == (status, "--overwrite" in err)
    assert (0, "", "page\n") == run("embed", "model.bpk", "--html", "page")


@pytest.mark.parametrize("name", [name for name in HOSTILE if "\0" not in name])
def test_a_page_is_inert_whatever_the_pack_holds(here, name):
    """Names, metadata, and the name of the file (bug B10)."""
    Writer({name: WEIGHT}, metadata={name: name}, scalars={name: 1}).plan().write_to_file("x.bpk")
    file = "<img src=x onerror=alert(1)>.bpk"
    Path("x.bpk").rename(file)
    assert 0 == run("embed", file, "--html", "page.html")[0]
    page()


def test_a_page_is_no_place_for_large_packs(here):
    """Above 64 MiB it is refused, with what to do instead; nothing is written."""
    bpk.save_file({"w": np.zeros(65 << 20, "u1")}, "large.bpk")
    status, _, err = run("embed", "large.bpk", "--html", "page.html")
    assert (2, True, False) == (status, "--package takes any" in err, Path("page.html").exists())


@pytest.mark.browser
def test_chromium_runs_nothing_and_downloads_the_pack(here):
    """The page of a hostile pack: no script, no request, and the download is the file."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "browser"))
    from demo_browser import shared_chromium

    hostile = {f"{i}.{name}": WEIGHT for i, name in enumerate(HOSTILE)}
    bpk.save_file(hostile, "hostile.bpk", {f"{i}{name}": name for i, name in enumerate(HOSTILE)})
    run("embed", "hostile.bpk", "--html", "page.html")
    with shared_chromium() as browser:
        context = browser.new_context(accept_downloads=True)
        seen, complaints = [], []
        context.on("request", lambda request: seen.append(request.url))
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        tab.goto((here / "page.html").as_uri())
        assert "hostile.bpk" == tab.title()
        with tab.expect_download() as waiting:
            tab.click("text=Download the pack")
        assert "hostile.bpk" == waiting.value.suggested_filename
        assert Path("hostile.bpk").read_bytes() == Path(waiting.value.path()).read_bytes()
        assert 0 == tab.locator("img, script, svg").count()
        assert [] == complaints
        assert all(url.startswith(("file:", "data:application/octet-stream")) for url in seen)
        context.close()
