"""The widget in JupyterLab, with a server and without one (JupyterLite)."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.desktop]

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def jupyterlab(folder):
    """Run JupyterLab over a folder; yield its address."""
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(folder / ".config"),
        "JUPYTER_DATA_DIR": str(folder / ".data"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / ".settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / ".workspaces"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--port=0"),
        *("--allow-root", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True"),
        f"--ServerApp.root_dir={folder}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            said = []
            for line in process.stdout:
                said.append(line)
                found = re.search(r"http://127\.0\.0\.1:\d+/", line)
                if found:
                    break
            else:
                pytest.fail("JupyterLab did not start:\n" + "".join(said[-20:]))
            answers(found[0])
            yield found[0]
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


def answers(address):
    """Wait until a server that has told its address listens there."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{address}api", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"nothing answers at {address}")


def fine(outputs):
    """Fail with the first error of the cells, if there is one; return their text."""
    for output in outputs:
        assert output["output_type"] != "error", "\n".join(output["traceback"])
    return "".join("".join(output.get("text", "")) for output in outputs)


def widget_works(page):
    """Look at the first inspector on the page: its tree, its statistics, its table's keys."""
    first = page.locator(".jp-OutputArea-output").get_by_role("treegrid").first
    expect(first).to_be_visible(timeout=120_000)
    expect(first).to_contain_text("conv1")
    return first


def test_the_widget_works_in_jupyterlab(tmp_path, lab):
    """The notebook's inspectors are drawn, and Python and page agree on what is chosen."""
    shutil.copy(ROOT / "notebooks" / "inspect_a_checkpoint.ipynb", tmp_path)
    shutil.copy(ROOT / "web-demo" / "mnist_demo" / "model.bpk", tmp_path / "mnist.bpk")
    with jupyterlab(tmp_path) as address:
        lab.run_all(f"{address}lab/tree/inspect_a_checkpoint.ipynb?reset")
        widget_works(lab.page)
        text = fine(lab.outputs())
    assert "module record: 18 tensors, 260,810 parameters" in text
    assert [] == lab.outside


@pytest.fixture(scope="session")
def lite():
    """The folder of the JupyterLite site, made if its inputs have changed."""
    from assembler.lite import build
    from assembler.site import DEMO

    folder = DEMO / "_lite"
    build(folder, print)
    return folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("in_the_browser", "7, 100.0%"),
        ("inspect_a_checkpoint", "module record: 18 tensors, 260,810 parameters"),
        ("resume_training", "epochs 13 to 30"),
        ("quickstart", "2 tensors, 100,480 elements"),
    ],
)
def test_the_notebooks_run_in_jupyterlite(name, said, lite, lab):
    """Every cell, in the browser, offline: nothing is asked of another machine."""
    from serve import serving

    start = time.perf_counter()
    with serving(lite) as address:
        lab.run_all(f"{address}lab/index.html?path={name}.ipynb")
        if "Inspector" in (ROOT / "notebooks" / f"{name}.ipynb").read_text():
            widget_works(lab.page)
        text = fine(lab.outputs())
    print(f"{name}: {time.perf_counter() - start:.1f} s")
    assert said in text
    assert [] == lab.outside
