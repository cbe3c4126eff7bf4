"""What README and the notebooks show, run as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.store import BurnpackStore
from tests.optim.test_everywhere import Net, gradients
from tests.support import desktop_module

pytestmark = pytest.mark.desktop

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def block(heading, index=0):
    """Return a Python block below a heading."""
    section = README.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)[index]


def test_save_and_load(tmp_path, monkeypatch):
    """The first block, then the one that looks inside."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(block("Save and load"), names)
    exec(block("Look inside"), names)
    assert (784, 128) == names["tensors"]["fc.weight"].shape


def test_resuming_ends_where_an_uninterrupted_run_ends(tmp_path, monkeypatch):
    """Ten lines; stopped after any epoch, a second run goes on bit for bit."""
    rng = np.random.default_rng(0)
    data = [
        (rng.standard_normal((8, 3), "f4"), rng.standard_normal((8, 2), "f4")) for _ in range(3)
    ]
    code = block("Save and resume a training run")
    assert len(code.strip().splitlines()) <= 13

    def run(folder, until):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        nn.manual_seed(1)
        net = Net()
        names = {"net": net, "data": data, "gradients": lambda net, b: gradients(net, *b)[1]}
        exec(code.replace("21", str(until)), names)
        return [value.value.tobytes() for value in net.named_params().values()]

    whole = run("whole", 21)
    run("stopped", 8)
    assert whole == run("stopped", 21)


def test_pytorch_to_burn_and_back(tmp_path, monkeypatch):
    """The store's two lines fill a module from a checkpoint and write a pack."""
    torch = desktop_module("torch")
    monkeypatch.chdir(tmp_path)
    theirs = torch.nn.Module()
    theirs.module = torch.nn.Sequential(torch.nn.Linear(3, 4))
    torch.save({"state_dict": theirs.state_dict()}, "net.pt")
    net = nn.Module()
    setattr(net, "0", nn.Linear(3, 4))
    exec(block("PyTorch to Burn, and back"), {"net": net})
    np.testing.assert_array_equal(
        BurnpackStore("net.bpk").get_tensor("0.weight").numpy(),
        theirs.module[0].weight.detach().numpy().T,
    )


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(path, monkeypatch, capsys):
    """Every code cell, in order, in one namespace; stored without outputs."""
    monkeypatch.chdir(path.parent)
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict = {}
    for cell in cells:
        assert cell["outputs"] == []
        exec("".join(cell["source"]), names)
    assert "module record: 18 tensors, 260,810 parameters" in capsys.readouterr().out
    assert names["small"].scalars["step"].value == 1200
