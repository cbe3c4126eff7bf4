"""The notebooks run, cell by cell, in a kernel of their own, and say what they promise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.desktop

ROOT = Path(__file__).resolve().parents[2]
SAID = {
    "quickstart": ["2 tensors, 100,480 elements", "fc.weight: dtype, by at most"],
    "inspect_a_checkpoint": ["module record: 18 tensors, 260,810 parameters", "odd things: none"],
    "pytorch_to_burn_and_back": ["1.weight               -> 1.gamma", "[10, 5408] -> [5408, 10]"],
    "resume_training": ["epochs 13 to 30", "optimizer record: Adam or AdamW"],
    "in_the_browser": ["7, 100.0%"],
}


def test_every_notebook_is_tried():
    """And none is stored with outputs, which would be of another day."""
    found = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert sorted(SAID) == [path.stem for path in found]
    for path in found:
        cells = json.loads(path.read_text())["cells"]
        assert [] == [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("name", SAID)
def test_a_notebook_runs(name, tmp_path):
    """In a fresh folder, with the demo's model beside it; it leaves nothing else behind."""
    import nbformat
    from nbclient import NotebookClient

    shutil.copy(ROOT / "web-demo" / "mnist_demo" / "model.bpk", tmp_path / "mnist.bpk")
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    text = "".join(
        "".join(output.get("text", ""))
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )
    for expected in SAID[name]:
        assert expected in text
    assert ["mnist.bpk"] == [path.name for path in tmp_path.iterdir()]
