"""The assembler takes only the right files, and says what failed; the server sends them right."""

from __future__ import annotations

import http.client
import io
import json
import socket
import zipfile
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from assembler import AssemblyError, lock, pyodide_lock
from assembler.lock import NpmSource, PypiSource, RuntimeFile, UrlSource
from assembler.site import DEMO
from assembler.sources import SourceError
from assembler.store import Store, sha256
from assembler.wheels import Wheel
from serve import serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.desktop

CONTENT = b"the right bytes"
FIRST = UrlSource("https://first.example/a.whl")
SECOND = NpmSource("second@1", "a.whl")
FILE = RuntimeFile("a.whl", sha256(CONTENT), (FIRST, SECOND))


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store whose sources answer with what the test puts into `answers`."""

    def get(_, source):
        asked.append(source)
        if isinstance(answers[source], str):
            raise SourceError(answers[source])
        return answers[source]

    answers: dict[object, bytes | str] = {}
    asked: list[object] = []
    monkeypatch.setattr("assembler.sources.Fetcher.get", get)
    store = Store(tmp_path / "cache", lambda _: None)
    return store, answers, asked


def test_sources_are_tried_in_order_until_one_has_the_file(store):
    """A source that cannot be reached is passed over."""
    store, answers, asked = store
    answers |= {FIRST: "no such host", SECOND: CONTENT}

    assert store.get([FILE]) == {"a.whl": CONTENT}
    assert asked == [FIRST, SECOND]


def test_a_source_with_other_bytes_counts_as_one_that_failed(store):
    """The sha256 is what is trusted, not the place."""
    store, answers, _ = store
    answers |= {FIRST: b"other bytes", SECOND: CONTENT}

    assert store.get([FILE]) == {"a.whl": CONTENT}


def test_a_file_is_fetched_once(store):
    """The second time it comes from the store."""
    store, answers, asked = store
    answers |= {FIRST: CONTENT}
    store.get([FILE])

    assert store.get([FILE]) == {"a.whl": CONTENT}
    assert asked == [FIRST]


def test_a_damaged_file_in_the_store_is_fetched_again(store):
    """What is taken from the store is checked each time."""
    store, answers, asked = store
    answers |= {FIRST: CONTENT}
    store.get([FILE])
    (store.root / FILE.sha256).write_bytes(b"damaged")

    assert store.get([FILE]) == {"a.whl": CONTENT}
    assert asked == [FIRST, FIRST]


def test_a_file_nobody_has_is_an_error_that_names_every_attempt(store):
    """File, digest, each source with its reason, and what to do."""
    store, answers, _ = store
    answers |= {FIRST: "first.example cannot be reached", SECOND: b"other bytes"}

    with pytest.raises(AssemblyError) as caught:
        store.get([FILE])

    text = str(caught.value)
    for part in ("a.whl", FILE.sha256, FIRST.url, "cannot be reached", "npm package second@1",
                 sha256(b"other bytes"), str(store.root)):  # fmt: skip
        assert part in text


def test_every_entry_of_the_lock_is_complete():
    """The committed lock reads, and what Pyodide needs to start is in it."""
    runtime = lock.read(DEMO / "runtime.lock.json")
    names = {file.name for file in runtime.core}
    wheels = [file.name for file in runtime.packages]

    assert {"pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"} < names
    assert [name.split("-")[0] for name in wheels] == ["numpy", "cbor2"]
    assert all(f"@{runtime.pyodide}" in str(file.sources[-1]) for file in runtime.core)


def test_the_lock_agrees_with_pyodides_own_lock_on_numpy(site):
    """Numpy is the one that this release of Pyodide was tested with."""
    runtime = lock.read(DEMO / "runtime.lock.json")
    digests = {file.name: file.sha256 for file in (*runtime.core, *runtime.packages)}
    cached = DEMO.parent / ".cache" / "runtime" / digests["pyodide-lock.json"]
    numpy = json.loads(cached.read_bytes())["packages"]["numpy"]

    assert numpy["sha256"] == digests[numpy["file_name"]]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"sha256": "abc", "sources": [{"kind": "url", "url": "x"}]}, "no valid sha256"),
        ({"sha256": "0" * 64, "sources": []}, "no source"),
        ({"sha256": "0" * 64, "sources": [{"kind": "ftp", "url": "x"}]}, "unknown kind 'ftp'"),
        ({"sources": []}, "sha256"),
    ],
)
def test_a_wrong_lock_is_refused(tmp_path, entry, message):
    """A mistake in the lock is an error of the lock, not of the network."""
    path = tmp_path / "runtime.lock.json"
    path.write_text(json.dumps({"pyodide": "1", "core": {"f": entry}, "packages": {}, "test": {}}))

    with pytest.raises(AssemblyError, match=message):
        lock.read(path)


def test_one_lock_entry_may_name_a_member_of_a_wheel():
    """A wheel that carries another file is a carrier only."""
    runtime = lock.read(DEMO / "runtime.lock.json")
    carriers = [source for file in runtime.packages for source in file.sources
                if isinstance(source, PypiSource) and source.member]  # fmt: skip

    assert all(source.member.endswith(".whl") for source in carriers)


def wheel(name, version="1.0", requires=()):
    """Make a wheel with metadata and one package."""
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in requires]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines) + "\n\n")
    return Wheel(f"{name}-{version}-py3-none-any.whl", buffer.getvalue())


def test_the_trimmed_lock_has_the_digests_of_what_is_shipped():
    """Compiling changes a wheel's bytes; Pyodide checks the bytes it gets."""
    one = wheel("my_app", requires=["base>=1; python_version >= '3'", "other; extra == 'x'"])
    shipped = {one.file_name: b"compiled", "base-1.0-py3-none-any.whl": b"base"}
    stock = json.dumps({"info": {"python": "3.14.0"}, "packages": {"scipy": {}}}).encode()

    document = json.loads(pyodide_lock.trim(stock, [one, wheel("base")], shipped))

    assert list(document["packages"]) == ["base", "my-app"]
    assert document["packages"]["my-app"]["depends"] == ["base"]
    assert sha256(b"compiled") == document["packages"]["my-app"]["sha256"]
    assert document["info"] == {"python": "3.14.0"}


def test_a_wheel_that_needs_what_does_not_ship_is_refused():
    """Otherwise the page would ask another machine for it."""
    one = wheel("my_app", requires=["scipy"])

    with pytest.raises(AssemblyError, match="my-app needs scipy"):
        pyodide_lock.trim(b"{}", [one], {one.file_name: b""})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small site."""
    (tmp_path / "_headers").write_text("/*\n  X-Test: yes\n")
    for name in ("index.html", "a.mjs", "a.wasm", "a.json", "a.whl"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "sub").mkdir()
    return tmp_path


def ask(address, path):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status, response.headers
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", "text/html; charset=utf-8"),
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("a.wasm", "application/wasm"),
        ("a.json", "application/json"),
        ("a.whl", "application/octet-stream"),
    ],
)
def test_the_server_sends_types_and_headers(folder, name, kind):
    """WebAssembly streams only with its own type; modules load only as scripts."""
    with serving(folder) as address:
        status, headers = ask(address, f"/{name}")

    assert status == 200
    assert kind == headers["Content-Type"]
    assert headers["X-Test"] == "yes"
    assert headers["Cache-Control"] == "no-cache"


def test_the_server_shows_no_listings_and_nothing_outside(folder):
    """Like a static host."""
    with serving(folder) as address:
        assert ask(address, "/sub/")[0] == 404
        assert ask(address, "/../../etc/passwd")[0] == 404


def test_a_taken_port_is_replaced_by_a_free_one(folder):
    """Somebody else's server is no reason not to show the demo."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serving(folder, port) as address:
            assert urlsplit(address).port != port
            assert ask(address, "/")[0] == 200
