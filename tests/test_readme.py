"""What README shows, run as it stands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bpk_lite as bpk
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
    """Both blocks, and then the inspector on what they have saved."""
    monkeypatch.chdir(tmp_path)
    names: dict = {"shards": [np.full((1024, 4096), i, "f4") for i in range(4)]}
    exec(block("Save and load"), names)
    exec(block("Save and load", 1), names)
    exec(block("Inspect a checkpoint"), names)
    assert (784, 128) == names["tensors"]["fc.weight"].shape
    assert (10, 128) == names["first_rows"].shape
    assert 3 == bpk.load_file("big.bpk")["w"][-1, -1]


def test_the_embedded_model_runs(tmp_path, monkeypatch):
    """The package that `bpk embed` makes is the one that the block names."""
    code = block("Run a model in the browser")
    names: dict = {}
    exec(code.partition("net = nn.static_model")[0], names)
    net = names["Net"]()
    net(np.zeros((1, 784), "f4"))
    net.into_record().save(tmp_path / "net")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    commands = [line for line in inline_commands() if line.startswith("bpk embed")]
    assert ["bpk embed net.bpk --package my_package"] == commands
    run(commands[0])
    exec(code.replace('"net.bpk"', f'"{resource(tmp_path)}"'), names)
    assert (1, 10) == names["net"](np.zeros((1, 784), "f4")).shape


def resource(folder):
    (pack,) = (folder / "my_package").glob("*.bpk")
    return pack.name


def inline_commands():
    return re.findall(r"`(bpk [^`]+)`", README)


def run(command):
    """Run a line of the README, without its comment, as a shell would."""
    words = shlex.split(command, comments=True)
    assert "bpk" == words[0]
    code = "import sys; from bpk_lite.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *words[1:]],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def commands():
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    lines = [line for language, text in fences if not language for line in text.splitlines()]
    return [line for line in lines if line.startswith("bpk ")]


@pytest.mark.parametrize("command", commands())
def test_every_command_runs(command, tmp_path, monkeypatch):
    """Each line of the README's console blocks, on files of the names that it has."""
    torch = desktop_module("torch")
    monkeypatch.chdir(tmp_path)
    for name, value in (("model", 1.0), ("other", 2.0)):
        bpk.save_file({"fc.weight": np.full((4, 3), value, "f4")}, f"{name}.bpk")
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    if "convert net.pt" in command:
        torch.save(net.state_dict(), "net.pt")
    if "convert net.bpk" in command:
        bpk.save_file({"0.weight": np.ones((3, 4), "f4"), "0.bias": np.ones(4, "f4")}, "net.bpk")
    done = run(command)
    assert (0 if "diff" not in command else 1) == done.returncode, done.stderr


def test_the_readme_shows_enough_commands():
    """So that the test above means something."""
    assert 6 == len(commands())


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
