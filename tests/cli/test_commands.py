"""The command `bpk` (S223, S233; bugs A17, B10)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bpk_lite as bpk
from tests.support import descriptor, pack_of

pytestmark = pytest.mark.desktop


def run(*args, stdin=b"", **env):
    """Run the command as a user does; return status, stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "bpk_lite", *map(str, args)],
        input=stdin,
        capture_output=True,
        env={**os.environ, "COLUMNS": "100", **env},
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def path(tmp_path):
    return bpk.save_file(
        {"layers.0.weight": np.ones((2, 3), "<f4"), "layers.0.bias": np.ones(3, "<f4")},
        tmp_path / "model.bpk",
        {"task": "mnist"},
        scalars={"step": 1200},
    )


def test_inspect_prints_all_there_is(path):
    """Path, sizes, metadata, scalars, tensors and totals, on stdout alone (S223)."""
    status, out, err = run("inspect", path)
    assert (0, "") == (status, err)
    for words in (str(path), "version 1", "task", "mnist", "step", "UInt", "1200", "layers.0.weight",
                  "[2, 3]", "F32", "2 tensors, 9 elements, 36 B"):  # fmt: skip
        assert words in out


def test_inspect_takes_the_name_without_its_extension(path):
    """As all reading does (C85)."""
    assert 0 == run("inspect", str(path).removesuffix(".bpk"))[0]


def test_inspect_json_is_the_summary(path):
    """Machine-readable, complete, and nothing else on stdout."""
    status, out, _ = run("inspect", path, "--json")
    found = json.loads(out)
    assert (0, {"task": "mnist"}) == (status, found["metadata"])
    assert ["layers.0.bias", "layers.0.weight"] == [row["name"] for row in found["tensors"]]


def test_inspect_tree_groups_paths(path):
    """Components become branches with counts."""
    _, out, _ = run("inspect", path, "--tree")
    assert "layers  2 tensors, 36 B" in out
    assert "weight  F32 [2, 3]  24 B" in out


def test_inspect_reads_standard_input(path):
    """`-` is standard input."""
    with open(path, "rb") as file:
        status, out, _ = run("inspect", "-", stdin=file.read())
    assert 0 == status
    assert "<stdin>" in out


def test_inspect_never_changes_the_file(path):
    """Neither content nor time stamps of writing (S222 is why this is tested)."""
    file = Path(path)
    before = (file.stat().st_mtime_ns, file.read_bytes())
    run("inspect", path)
    run("verify", path)
    assert before == (file.stat().st_mtime_ns, file.read_bytes())


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\x81\xa4item", "MessagePack"), (b"PK\x03\x04" + bytes(20), "zip archive"), (b"", "empty file"),
     (b"BURN" + bytes(20), "NRUB"), (b"NRUB\x01\0\xff\0\0\0" + bytes(20), "interrupted")],
)  # fmt: skip
def test_a_foreign_or_broken_file_is_explained_in_one_line(tmp_path, content, words):
    """Status 2, nothing on stdout, what the file is on stderr, no traceback (S233)."""
    (tmp_path / "x.bpk").write_bytes(content)
    status, out, err = run("inspect", tmp_path / "x.bpk")
    assert (2, "", 1) == (status, out, err.count("\n"))
    assert words in err
    assert err.startswith("bpk: ")


def test_a_missing_file_is_explained():
    """Status 2 and the path."""
    status, _, err = run("inspect", "no/such/file")
    assert 2 == status
    assert "no/such/file.bpk: No such file" in err


def test_verify_has_status_1_for_findings_and_0_for_none(path, tmp_path):
    """Findings are lines with a code; `--json` has them as objects (bug A17)."""
    status, out, _ = run("verify", path)
    assert (0, True) == (status, "no odd things" in out)
    odd = tmp_path / "odd.bpk"
    odd.write_bytes(pack_of({"a": descriptor("U8", (1,), (5, 6))}, bytes(6)))
    status, out, _ = run("verify", odd)
    assert (1, True) == (status, "misaligned" in out)
    found = json.loads(run("verify", odd, "--json")[1])
    assert ["misaligned", "gap"] == [finding["code"] for finding in found]


def test_names_cannot_reach_the_terminal_as_control_sequences(tmp_path):
    """Escapes, markup and line breaks of names and values are shown, not obeyed (bug B10)."""
    path = bpk.save_file(
        {"\x1b[31mred[bold]\n": np.ones(1), "a[/bold]": np.ones(1)},
        tmp_path / "x.bpk",
        {"k\x07": "v\x1b]0;title\x07"},
    )
    for option in ("--json", "--tree", None):
        _, out, _ = run("inspect", path, *[option] * (option is not None), FORCE_COLOR="0")
        assert "\x1b]0" not in out
        assert "\x07" not in out
        assert "\x1b[31mred" not in out
    assert r"\x1b[31mred[bold]\n" in run("inspect", path)[1]


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    """A missing typer is one line, not a traceback."""
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('x', name='typer')")
    status, _, err = run("inspect", "x", PYTHONPATH=str(tmp_path))
    assert (1, "the command bpk needs the cli extra: pip install 'bpk-lite[cli]'\n") == (
        status,
        err,
    )


def test_the_version_is_the_packages():
    """`bpk --version` prints it."""
    assert f"bpk {bpk.__version__}\n" == run("--version")[1]
