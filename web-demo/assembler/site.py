"""All of it in one folder: made beside its place, then swapped in at once.

What the folder holds is a function of the files that `_inputs` names, so a folder made from the
same inputs is left alone. ``files.json`` records their digest and every file's size and sha256: the
page reads it for its progress bars, the service worker for what to keep and under which name.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assembler import lock, pyodide_lock, wheels
from assembler.precompile import Archive, Precompiler
from assembler.store import Store, sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = [
    "CACHE",
    "DEMO",
    "PROJECT",
    "STDLIB",
    "STOCK_LOCK",
    "Runtime",
    "assemble",
    "browser_test_scripts",
    "compiled_test_wheels",
    "digest_of_inputs",
    "files_under",
    "prepare",
]

DEMO: Final = Path(__file__).resolve().parent.parent
PROJECT: Final = DEMO.parent
_DRAWING: Final = PROJECT / "widgets" / "bpk_lite_widgets" / "static"
CACHE: Final = PROJECT / ".cache"
STDLIB: Final = "python_stdlib.zip"
STOCK_LOCK: Final = "pyodide-lock.json"
# Neither is part of what the page loads: the host reads one, the browser itself the other.
_UNLISTED: Final = frozenset({"_headers", "sw.js"})


@dataclass(frozen=True, slots=True)
class Runtime:
    """The files of ``runtime.lock.json`` in memory, and a compiler made of them."""

    lock: lock.RuntimeLock
    core: dict[str, bytes]
    compiler: Precompiler


def assemble(out: Path, say: Callable[[str], None]) -> bool:
    """Make the site in folder `out`, which is replaced as a whole.

    Returns:
        False if `out` was up to date and nothing was done.

    Raises:
        AssemblyError: If something is missing or fails; `out` is then as it was.
    """
    inputs = digest_of_inputs()
    if _is_current(out, inputs):
        say(f"{out} is up to date")
        return False
    runtime = prepare(say)
    carried = Store(CACHE / "runtime", say).get(runtime.lock.packages)
    say("building the wheels of bpk_lite and mnist_demo")
    own = [wheels.build(PROJECT), wheels.build(DEMO)]
    all_wheels = [*(wheels.Wheel(name, content) for name, content in carried.items()), *own]
    leave_out = {file.name: file.leave_out for file in runtime.lock.packages}
    # The pages load the drawing modules as files of the site.
    leave_out |= {wheel.file_name: ("bpk_lite_widgets/static/*",) for wheel in own}
    compiled = runtime.compiler.compile(
        [
            Archive(STDLIB, runtime.core[STDLIB]),
            *(Archive(w.file_name, w.content, leave_out.get(w.file_name, ())) for w in all_wheels),
        ]
    )
    trimmed = pyodide_lock.trim(runtime.core[STOCK_LOCK], all_wheels, compiled)
    content = {
        f"pyodide/{name}": data
        for name, data in (runtime.core | compiled | {STOCK_LOCK: trimmed}).items()
    }
    fonts = Store(CACHE / "runtime", say).get(runtime.lock.fonts)
    content |= {f"fonts/{name}": data for name, data in fonts.items()}
    static = DEMO / "site"
    for path in files_under(static):
        content[path.relative_to(static).as_posix()] = path.read_bytes()
    for path in files_under(_DRAWING):
        content[f"inspector/drawing/{path.name}"] = path.read_bytes()
    content["files.json"] = _file_list(content, inputs)
    _replace(out, content)
    total = sum(map(len, content.values()))
    say(f"{out}: {len(content)} files, {total / 1e6:.1f} MB")
    return True


def compiled_test_wheels(folder: Path, say: Callable[[str], None]) -> None:
    """Fill `folder` with what the tests inside Pyodide need beside the site, compiled.

    Raises:
        AssemblyError: If a wheel cannot be had or compiled.
    """
    runtime = prepare(say)
    carried = Store(CACHE / "runtime", say).get(runtime.lock.test)
    archives = [Archive(name, content) for name, content in carried.items()]
    _replace(folder, runtime.compiler.compile(archives))


def browser_test_scripts(say: Callable[[str], None]) -> dict[str, str]:
    """Return the scripts that the tests in Chromium run in the pages, by name.

    Raises:
        AssemblyError: If one cannot be had.
    """
    files = lock.read(DEMO / "runtime.lock.json").browser
    found = Store(CACHE / "runtime", say).get(files)
    return {name: content.decode() for name, content in found.items()}


def prepare(say: Callable[[str], None]) -> Runtime:
    """Return the runtime lock, Pyodide's own files, and a compiler made of them."""
    runtime_lock = lock.read(DEMO / "runtime.lock.json")
    core = Store(CACHE / "runtime", say).get(runtime_lock.core)
    return Runtime(runtime_lock, core, Precompiler(core, CACHE / "precompiled", say))


def _inputs() -> Iterator[Path]:
    """Yield every file that what the folder holds depends on."""
    for name in ("assembler", "site", "mnist_demo"):
        yield from files_under(DEMO / name)
    yield from (DEMO / "runtime.lock.json", DEMO / "pyproject.toml")
    for name in ("bpk_lite", "widgets"):
        yield from files_under(PROJECT / name)
    for name in ("pyproject.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"):
        if (PROJECT / name).is_file():
            yield PROJECT / name


def files_under(folder: Path) -> list[Path]:
    """Return all files below a folder, in order, without Python's caches."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )


def digest_of_inputs(more: Iterable[Path] = ()) -> str:
    """Return a digest of every file that a site is made of, `more` among them."""
    lines = [
        f"{path.relative_to(PROJECT)} {sha256(path.read_bytes())}" for path in (*_inputs(), *more)
    ]
    return sha256("\n".join(lines).encode())


def _file_list(content: Mapping[str, bytes], inputs: str) -> bytes:
    files = [
        {"name": name, "size": len(data), "sha256": sha256(data)}
        for name, data in sorted(content.items())
        if name not in _UNLISTED
    ]
    version = sha256(json.dumps(files).encode())
    return json.dumps({"version": version, "inputs": inputs, "files": files}, indent=1).encode()


def _is_current(out: Path, inputs: str) -> bool:
    """Tell whether `out` was made from `inputs` and still has all its files, by their sizes."""
    try:
        document: dict[str, Any] = json.loads((out / "files.json").read_bytes())
        return document["inputs"] == inputs and all(
            (out / file["name"]).stat().st_size == file["size"] for file in document["files"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _replace(out: Path, content: Mapping[str, bytes]) -> None:
    """Write `content` into a new folder beside `out` and put it in its place.

    A process that dies between the two renames leaves `out` missing, never half written.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    try:
        fresh, old = scratch / "new", scratch / "old"
        fresh.mkdir()
        for name, data in content.items():
            target = fresh / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        if out.exists():
            out.rename(old)
        fresh.rename(out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
