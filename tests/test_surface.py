"""What the package is made of: its public names, its imports, its wheel."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import bpk_lite

pytestmark = pytest.mark.desktop

ROOT = Path(__file__).parent.parent
MODULES = [
    f"bpk_lite{part}"
    for part in (
        "", ".pack", ".records", ".nn", ".optim", ".optim.lr", ".inspect", ".store",
        ".store.pytorch", ".convert", ".desktop", ".torch", ".testing",
    )
]  # fmt: skip
PORTABLE = ["bpk_lite", "bpk_lite.pack", "bpk_lite.records", "bpk_lite.nn", "bpk_lite.optim",
            "bpk_lite.inspect", "bpk_lite.store", "bpk_lite.convert"]  # fmt: skip
MACHINE = {"mmap", "tempfile", "threading", "socket", "subprocess", "ctypes", "multiprocessing"}
# what importing bpk_lite may load beyond numpy and cbor2: light standard modules
LIGHT = {"__future__", "_heapq", "bpk_lite", "difflib", "fnmatch", "gc", "heapq"}


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_sorted_and_exist(name):
    """`__all__` lists each name once, in order, and each is there (httpx's habit)."""
    module = importlib.import_module(name)
    assert sorted(set(module.__all__), key=_ruff_order) == list(module.__all__)
    assert [] == [item for item in module.__all__ if not hasattr(module, item)]


def _ruff_order(name):
    """Constants, then classes, then the rest: the order that ruff keeps `__all__` in."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)]


def test_public_names_are_documented():
    """The documented surface is the real one: docs/api.md names everything, and nothing more."""
    documented = set(
        re.findall(r"^- `bpk_lite\.(\w+)`", (ROOT / "docs/api.md").read_text(), re.MULTILINE)
    )
    assert set(bpk_lite.__all__) == documented


def test_the_names_of_inspect_are_documented():
    """As for the top level: all of them, and nothing more."""
    from bpk_lite import inspect

    documented = re.findall(
        r"^- `inspect\.(\w+)`", (ROOT / "docs/api.md").read_text(), re.MULTILINE
    )
    assert sorted(inspect.__all__) == sorted(documented)


def test_every_public_object_has_a_docstring():
    """Functions, classes and their public methods say what they do."""
    bare = []
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            item = getattr(module, name)
            if callable(item) and not item.__doc__:
                bare.append(name)
            if isinstance(item, type):
                bare += [
                    f"{name}.{key}"
                    for key, value in vars(item).items()
                    if not key.startswith("_") and callable(value) and not value.__doc__
                ]
    assert [] == bare


def loaded(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after `statement`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}; import sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing():
    """Not even numpy: `bpk --help` and completion are as fast as that."""
    beyond = loaded("import bpk_lite") - loaded("import importlib, typing")
    assert {"bpk_lite", "bpk_lite._version"} == beyond


def test_the_first_name_loads_numpy_cbor2_and_little_else():
    """Nothing heavy comes with the container and its verbs; parts come when they are named."""
    beyond = loaded("from bpk_lite import load, Reader") - loaded(
        "import numpy, cbor2, dataclasses, typing"
    )
    roots = {name.split(".")[0] for name in beyond}
    assert roots <= LIGHT, roots - LIGHT
    parts = {name.split(".")[1] for name in beyond if name.startswith("bpk_lite.")}
    assert {"pack", "_door", "_verbs", "_version"} == parts


@pytest.mark.parametrize("name", PORTABLE)
def test_portable_layers_load_nothing_of_the_machine(name):
    """No mmap, tempfile, threading, socket or subprocess beyond what numpy itself loads."""
    beyond = loaded(f"import {name}") - loaded("import numpy, cbor2")
    assert not beyond & MACHINE


def test_the_command_is_not_loaded_by_the_library():
    """Typer and rich stay with the command."""
    everything = loaded("import bpk_lite, bpk_lite.optim, bpk_lite.inspect, bpk_lite.desktop")
    assert not everything & {"typer", "rich", "click", "torch", "hypothesis"}


def test_an_unknown_attribute_is_an_attribute_error():
    """The lazy import does not turn typing errors into import errors."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bpk_lite.nothing  # noqa: B018


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Two wheels built from the same tree."""
    folders = [tmp_path_factory.mktemp("wheel") for _ in range(2)]
    for folder in folders:
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
            check=True, capture_output=True,
        )  # fmt: skip
    return [next(folder.glob("*.whl")) for folder in folders]


def test_the_wheel_holds_the_package_and_its_licences(wheels):
    """All modules and assets of both (H1), markers, licences, the command; nothing else."""
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(next(n for n in names if n.endswith("/METADATA"))).decode()
        points = wheel.read(next(n for n in names if n.endswith("/entry_points.txt"))).decode()
    tree = {
        str(path.relative_to(package.parent))
        for package in (ROOT / "bpk_lite", ROOT / "widgets" / "bpk_lite_widgets")
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "bpk_lite_widgets/static/inspector.css" in tree
    assert tree == {name for name in names if ".dist-info/" not in name}
    assert {"LICENSE-MIT", "LICENSE-APACHE"} == {
        n.split("/")[-1] for n in names if "/licenses/" in n
    }
    assert "License-Expression: MIT OR Apache-2.0" in metadata
    assert re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", metadata, re.MULTILINE) == [
        "cbor2",
        "numpy",
    ]
    assert "bpk = bpk_lite.cli:main" in points


def test_the_wheel_is_reproducible(wheels):
    """Built twice, the same bytes."""
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
