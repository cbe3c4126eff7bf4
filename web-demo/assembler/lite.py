"""The notebooks as a JupyterLite site: Jupyter and Python in the browser, no server, no network.

Jupyter's part is ``jupyterlite-core`` and its Pyodide kernel, which are installed. Python's
part is ours: Pyodide from the runtime lock, its wheels and that of this project, all compiled, and
a lock that names nothing else, so that a missing package is an error and no request to some host.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assembler import AssemblyError, pyodide_lock, wheels
from assembler.precompile import Archive
from assembler.site import (
    CACHE,
    DEMO,
    PROJECT,
    STDLIB,
    STOCK_LOCK,
    digest_of_inputs,
    files_under,
    prepare,
)
from assembler.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NOTEBOOKS", "build"]

NOTEBOOKS: Final = ("quickstart", "inspect_a_checkpoint", "resume_training", "in_the_browser")
"""Those that need no PyTorch, which does not exist for browsers."""

_MARK: Final = "inputs.txt"
# ipywidgets names the classic notebook's extension, which JupyterLite does not use
_NOT_NEEDED: Final = frozenset({"widgetsnbextension"})
_PRELOADED: Final = ("bpk-lite", "anywidget", "ipython", "comm")


def build(out: Path, say: Callable[[str], None]) -> bool:
    """Make the site in folder `out`, which is replaced as a whole.

    Returns:
        False if `out` was up to date and nothing was done.

    Raises:
        AssemblyError: If something is missing or fails; `out` is then as it was.
    """
    notebooks = [PROJECT / "notebooks" / f"{name}.ipynb" for name in NOTEBOOKS]
    inputs = digest_of_inputs(notebooks)
    mark = out / _MARK
    if mark.is_file() and mark.read_text(encoding="utf-8") == inputs:
        say(f"{out} is up to date")
        return False
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        folder = Path(scratch)
        _write(folder / "lite" / "static" / "pyodide", _python(say))
        contents = folder / "contents"
        contents.mkdir()
        for path in notebooks:
            shutil.copy(path, contents)
        shutil.copy(DEMO / "mnist_demo" / "model.bpk", contents / "mnist.bpk")
        (folder / "lite" / "jupyter-lite.json").write_text(json.dumps(_settings(), indent=1))
        say("building JupyterLite")
        _jupyter(folder)
        made = folder / "site"
        (made / _MARK).write_text(inputs, encoding="utf-8")
        if out.exists():
            out.rename(folder / "old")
        made.rename(out)
    total = sum(path.stat().st_size for path in files_under(out))
    say(f"{out}: {total / 1e6:.1f} MB")
    return True


def _python(say: Callable[[str], None]) -> dict[str, bytes]:
    """Return the files of Pyodide and of all packages, compiled, by name."""
    runtime = prepare(say)
    carried = Store(CACHE / "runtime", say).get((*runtime.lock.packages, *runtime.lock.notebooks))
    say("building the wheel of bpk_lite")
    found = [
        *(wheels.Wheel(name, content) for name, content in carried.items()),
        wheels.build(PROJECT),
    ]
    leave_out = {file.name: file.leave_out for file in runtime.lock.packages}
    compiled = runtime.compiler.compile(
        [
            Archive(STDLIB, runtime.core[STDLIB]),
            *(Archive(w.file_name, w.content, leave_out.get(w.file_name, ())) for w in found),
        ]
    )
    trimmed = pyodide_lock.trim(runtime.core[STOCK_LOCK], found, compiled, not_needed=_NOT_NEEDED)
    return runtime.core | compiled | {STOCK_LOCK: trimmed}


def _settings() -> dict[str, Any]:
    kernel = {
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"packages": list(_PRELOADED)},
    }
    return {
        "jupyter-lite-schema-version": 0,
        "jupyter-config-data": {
            "appName": "bpk_lite",
            "exposeAppInBrowser": True,  # the smoke test drives it
            "disabledExtensions": ["@jupyterlab/apputils-extension:announcements"],
            "litePluginSettings": {"@jupyterlite/pyodide-kernel-extension:kernel": kernel},
        },
    }


def _jupyter(folder: Path) -> None:
    command = [
        *(sys.executable, "-m", "jupyterlite_core", "build", "--no-sourcemaps", "--apps", "lab"),
        *("--lite-dir", str(folder / "lite"), "--contents", str(folder / "contents")),
        *("--output-dir", str(folder / "site")),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise AssemblyError(
            "JupyterLite could not be built. It needs: python -m pip install --group notebooks\n"
            f"{last}"
        )


def _write(folder: Path, content: dict[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, data in content.items():
        (folder / name).write_bytes(data)
