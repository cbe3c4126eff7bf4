"""What docs/inspect.md shows, run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.inspect import verify
from tests.inspect.test_verify import CASES

pytestmark = pytest.mark.desktop

TEXT = (Path(__file__).parent.parent.parent / "docs" / "inspect.md").read_text()


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    """In one piece; it prints the summary."""
    monkeypatch.chdir(tmp_path)
    bpk.save_file({"fc.weight": np.ones((784, 128), "f4")}, "model.bpk")
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert "1 tensor, 100,352 elements, 392 KiB" in capsys.readouterr().out
    assert (1.0, (392, 128)) == (names["stats"].mean, names["picture"].values.shape)


def test_every_code_of_verify_is_documented():
    """Those of the documentation of `Finding`, which the cases of the tests have; and no other."""
    documented = re.findall(
        r"`([a-z-]+)`", TEXT.partition("knows these codes:")[2].partition("A truncated")[0]
    )
    in_code = re.findall(r'``"([a-z-]+)"``', (verify.__globals__["Finding"].__doc__))
    assert sorted(documented) == sorted(in_code)
    tested = {code for _, _, codes in CASES.values() for code in codes}
    assert set(documented) - tested == {"old-version", "empty"}  # these have tests of their own
