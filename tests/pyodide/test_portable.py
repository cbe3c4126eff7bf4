"""The portable layers behave in Pyodide as they do here: their tests run there as well."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.desktop

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
sys.path.insert(0, str(PROJECT / "web-demo"))

from assembler.site import DEMO, assemble, compiled_test_wheels  # noqa: E402  # not a package

FOLDERS = (
    "pack", "records", "nn", "optim", "inspect", "store", "convert",
    "conformance", "hostile", "properties",
)  # fmt: skip
NOT_THERE = "not desktop and not browser and not oracle"


def test_the_portable_tests_pass_inside_pyodide(pytestconfig):
    """All tests of the portable layers, but those that need a real machine."""
    node = shutil.which("node")
    assert node, "node is not installed: it runs Pyodide here. Install Node.js 20 or newer."
    wheels = PROJECT / ".cache" / "pyodide-tests"
    assemble(DEMO / "_site", print)
    compiled_test_wheels(wheels, print)
    folders = [f"tests/{name}" for name in FOLDERS if (PROJECT / "tests" / name).is_dir()]
    assert folders, "there are no portable tests"

    runner = [node, str(HERE / "run.mjs"), str(DEMO / "_site" / "pyodide"), str(wheels)]
    options = ["-m", NOT_THERE, "-p", "no:cacheprovider", "-q", "-ra", "--no-header"]
    run = subprocess.run(
        [*runner, str(PROJECT), *options, *folders],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, f"{run.stdout[-8000:]}\n{run.stderr[-4000:]}"
    summary = re.search(r"^.*\b\d+ passed.*$", run.stdout, re.MULTILINE)
    assert summary, run.stdout[-4000:]
    report_line(pytestconfig, f"inside Pyodide ({', '.join(folders)}): {summary[0].strip('= ')}")


def report_line(config, text):
    """Write `text` into the log of the run, also when pytest captures what tests print."""
    capture = config.pluginmanager.getplugin("capturemanager")
    reporter = config.pluginmanager.getplugin("terminalreporter")
    with capture.global_and_fixture_disabled():
        reporter.ensure_newline()
        reporter.write_line(text)
