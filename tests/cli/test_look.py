"""inspect --stats, verify, diff and hash: what they print, and what they exit with."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

import cbor2
import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.inspect import diff, digest, tensor_digest
from bpk_lite.pack import Tensor, Writer
from tests.cli.here import run
from tests.inspect.test_verify import CASES
from tests.support import pack_of, raw_pack

pytestmark = pytest.mark.desktop

WEIGHT = np.array([[0.0, -1.5], [np.nan, np.inf]], "f4")


def tensors(weight=WEIGHT, param_id=3):
    return [
        Tensor.from_array("fc.weight", weight, param_id=param_id),
        Tensor.from_array("fc.bias", np.arange(2, dtype="i8"), param_id=4),
    ]


def saved(path, made, **more):
    return Writer(made, **more).plan().write_to_file(path)


@pytest.fixture
def path(tmp_path):
    return saved(tmp_path / "a.bpk", tensors(), metadata={"task": "mnist"}, scalars={"step": 3})


@pytest.fixture
def files(path, tmp_path):
    """The same weights in every format there is."""
    found = {"burnpack": path}
    for name in ("a.safetensors", "a.pt", "a.npz"):
        assert 0 == run("convert", path, tmp_path / name)[0]
        found[name] = str(tmp_path / name)
    return found


def test_stats_are_columns_and_what_stands_out_is_said(path):
    """Extremes, mean, deviation, zeros; NaN and infinities in words."""
    status, out, err = run("inspect", path, "--stats")
    assert (0, "") == (status, err)
    row = next(line for line in out.splitlines() if line.startswith("fc.weight"))
    assert [
        "fc.weight",
        "F32",
        "[2,",
        "2]",
        "-1.5",
        "inf",
        "-0.75",
        "0.75",
        "25.0%",
        "1",
        "NaN,",
        "1",
        "+inf",
    ] == row.split()
    _, out, _ = run("inspect", path, "--stats", "--tree")
    assert "weight  F32 [2, 2]  16 B  -1.5 to inf, mean -0.75, std 0.75  1 NaN, 1 +inf" in out


def test_stats_as_json_are_strict(path):
    """With each tensor; NaN and infinities as text."""
    found = json.loads(run("inspect", path, "--stats", "--json")[1], parse_constant=pytest.fail)
    stats = {row["name"]: row["stats"] for row in found["tensors"]}
    assert ("inf", -1.5, 1) == (
        stats["fc.weight"]["max"],
        stats["fc.weight"]["min"],
        stats["fc.weight"]["nans"],
    )
    assert 2 == stats["fc.bias"]["distinct"]
    found = json.loads(run("inspect", path, "--json")[1])
    assert "stats" not in found["tensors"][0]


@pytest.mark.parametrize("form", ["a.safetensors", "a.pt", "a.npz"])
def test_every_format_can_be_looked_into(files, form):
    """By its content; with statistics, and as JSON."""
    status, out, _ = run("inspect", files[form], "--stats")
    kind = {"a.safetensors": "safetensors", "a.pt": "pytorch", "a.npz": "npz"}[form]
    assert (0, True, True) == (status, f"\n{kind}\n" in out, "1 NaN, 1 +inf" in out)
    found = json.loads(run("inspect", files[form], "--json")[1])
    assert (kind, files[form]) == (found["format"], found["name"])
    with open(files[form], "rb") as file:
        status, out, _ = run("inspect", "-", stdin=file.read())
    assert (0, True) == (status, out.startswith("<stdin>"))


def test_warnings_are_shown_while_looking(tmp_path):
    """Those that the metadata tell, below the tensors."""
    (tmp_path / "odd.bpk").write_bytes(pack_of(*CASES["misaligned and overlapping"][:2]))
    out = run("inspect", tmp_path / "odd.bpk")[1]
    assert "\nmisaligned  'b' starts at 4" in out
    assert "\noverlap  'b' at 4 to 6 overlaps 'a'" in out


@pytest.mark.parametrize("case", CASES)
def test_verify_exits_with_1_for_each_odd_thing(tmp_path, case):
    """And with 0 for what only looks odd; the codes are in the JSON (bugs A4, A6, A14)."""
    content, data, expected = CASES[case]
    (tmp_path / "x.bpk").write_bytes(pack_of(content, data, metadata={"k": "v"}))
    status, out, err = run("verify", tmp_path / "x.bpk", "--json")
    assert (bool(expected), "") == (status, err)
    assert expected == [finding["code"] for finding in json.loads(out)]


@pytest.mark.parametrize(
    ("blob", "status", "words"),
    [(Writer({"a": np.ones(100)}).plan().into_bytes()[:-1], 2, "tensors end at"),
     (Writer({"a": np.ones(100)}).plan().into_bytes()[:40], 2, "announces"), (b"", 2, "empty file"),
     (raw_pack(cbor2.dumps({"tensors": {}}) + bytes(8)), 2, "follow the CBOR item"),
     (raw_pack(cbor2.dumps({"tensors": {}})), 1, "empty  no tensors"),
     (b"\x81\xa4item" + bytes(30), 2, "MessagePack")],
)  # fmt: skip
def test_verify_never_calls_a_broken_or_empty_file_valid(tmp_path, blob, status, words):
    """Truncated is an error, empty is a finding (bugs A6, A17)."""
    (tmp_path / "x.bpk").write_bytes(blob)
    found, out, err = run("verify", tmp_path / "x.bpk")
    assert (status, True) == (found, words in (err if status == 2 else out))
    assert (out == "") == (status == 2)


def test_diff_exits_with_0_for_the_same_and_1_for_a_difference(path, tmp_path):
    """Whatever order it is stored in; what differs is a row, and the JSON is the library's."""
    same = saved(
        tmp_path / "b.bpk", tensors()[::-1], metadata={"task": "mnist"}, scalars={"step": 3}
    )
    assert (0, "same: 2 same\n", "") == run("diff", path, same)
    other = saved(
        tmp_path / "c.bpk", tensors(WEIGHT + 1), metadata={"task": "cifar"}, scalars={"step": 3}
    )
    status, out, err = run("diff", path, other)
    assert (1, "") == (status, err)
    for words in ("mnist", "cifar", "changed", "fc.weight", "2 of 4 elements differ", "max abs 1",
                  "different: 1 changed, 1 same"):  # fmt: skip
        assert words in out
    status, out, _ = run("diff", path, other, "--json")
    with bpk.open(path) as a, bpk.open(other) as b:
        assert (1, json.loads(json.dumps(diff(a, b).to_dict()))) == (status, json.loads(out))


def test_diff_without_data_looks_at_shapes_only(path, tmp_path):
    """Other values are not noticed, another shape is."""
    other = saved(
        tmp_path / "c.bpk", tensors(WEIGHT + 1), metadata={"task": "mnist"}, scalars={"step": 3}
    )
    assert (0, "same but for the data: 2 unread\n", "") == run("diff", path, other, "--no-data")
    other = saved(
        tmp_path / "d.bpk", tensors(WEIGHT[:1]), metadata={"task": "mnist"}, scalars={"step": 3}
    )
    status, out, _ = run("diff", path, other, "--no-data")
    assert (1, True) == (status, "[2, 2] → [1, 2]" in out)


def test_diff_notices_ids(path, tmp_path):
    """Equal weights of other parameters are no equal packs."""
    other = saved(
        tmp_path / "b.bpk", tensors(param_id=9), metadata={"task": "mnist"}, scalars={"step": 3}
    )
    status, out, _ = run("diff", path, other)
    assert (1, True) == (status, "id  " in out and "id 3 → 9" in out)


def test_diff_works_across_formats(files):
    """A conversion that lost nothing shows no difference; npz has no place for metadata."""
    assert 0 == run("diff", files["burnpack"], files["a.safetensors"])[0]
    status, out, _ = run("diff", files["a.safetensors"], files["a.npz"])
    assert (1, True) == (status, "task" in out)


@pytest.mark.parametrize(
    "args", [("a.bpk", "nothing.bpk"), ("nothing.bpk", "a.bpk"), ("a.bpk", "broken")]
)
def test_diff_exits_with_2_for_a_file_it_cannot_read(path, tmp_path, args):
    """Never with 1, which means that they differ."""
    (tmp_path / "broken").write_bytes(b"NRUB\1\0\xff\0\0\0" + bytes(20))
    status, out, err = run("diff", *(tmp_path / name for name in args))
    assert (2, "", 1) == (status, out, err.count("\n"))


def test_hash_is_the_digest_of_the_content(files, path):
    """One line a file, in the form of sha256sum; equal across formats where only tensors count."""
    with bpk.open(path) as pack:
        right, weights = digest(pack), digest(pack, tensors_only=True)
        blake = digest(pack, "blake2b")
        each = {name: tensor_digest(tensor) for name, tensor in pack.items()}
    assert (0, f"{right}  {path}\n", "") == run("hash", path)
    assert f"{blake}  {path}\n" == run("hash", path, "--algorithm", "blake2b")[1]
    paths = [files["burnpack"], files["a.safetensors"], files["a.pt"]]
    out = run("hash", *paths, "--tensors-only")[1]
    assert {weights} == {line.split("  ")[0] for line in out.splitlines()[:2]}
    lines = run("hash", path, "--each")[1].splitlines()
    assert f"{each['fc.bias']}  {path}:fc.bias" == lines[0]
    assert f"{right}  {path}" == lines[-1]
    found = json.loads(run("hash", path, "--each", "--json")[1])
    assert [{"file": path, "algorithm": "sha256", "digest": right, "tensors": each}] == found


def test_hash_prints_what_it_has_before_a_file_fails(path, tmp_path):
    """As sha256sum does; the status tells."""
    status, out, err = run("hash", path, tmp_path / "nothing", path)
    assert (2, 1, 1) == (status, out.count("\n"), err.count("\n"))


def test_hash_refuses_an_algorithm_that_is_not_there(path):
    """In one line, with those that are."""
    status, out, err = run("hash", path, "--algorithm", "crc32")
    assert (2, "", True, 1) == (status, out, "sha256" in err, err.count("\n"))


@pytest.mark.parametrize(
    "args",
    [
        ["diff", "x.bpk", "y.bpk"],
        ["inspect", "x.bpk", "--stats"],
        ["hash", "x.bpk", "--each"],
        ["verify", "x.bpk"],
    ],
)
def test_no_command_lets_a_name_act_on_the_terminal(tmp_path, args):
    """Escapes, bells, line breaks and direction overrides are shown (bug B10)."""
    name = "\x1b[31mred\n\u202e\x07"
    for file, value in (("x.bpk", 1), ("y.bpk", 2)):
        saved(tmp_path / file, [Tensor.from_array(name, np.full(3, value), param_id=1), Tensor.from_array("b" + name, np.ones(1), param_id=1)],
              metadata={name: f"{name}{value}"}, scalars={name: value})  # fmt: skip
    _, out, err = run(*[tmp_path / arg if arg.endswith(".bpk") else arg for arg in args])
    assert (out + err).replace("\n", "").isprintable()
    assert r"\x1b[31mred\n\u202e\x07" in out


@contextlib.contextmanager
def terminal():
    """Give a terminal's other end, and a way to read what was written on it."""
    import pty

    ours, theirs = pty.openpty()

    def read():
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while chunk := os.read(ours, 65536):
                text += chunk
        return text.decode()

    yield theirs, read
    os.close(ours)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
@pytest.mark.parametrize("args", [["inspect", "--stats"], ["hash"], ["hash", "--json"]])
def test_a_bar_is_for_terminals_and_goes_to_stderr(path, args):
    """On a terminal it is drawn and wiped away; the data on stdout are the same as without."""
    command = [sys.executable, "-m", "bpk_lite", args[0], path, *args[1:]]
    with terminal() as (other_end, read):
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=other_end, text=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )  # fmt: skip
        shown = read()
    assert (True, 0) == ("\x1b[" in shown, done.returncode)
    quiet = run(*args[:1], path, *args[1:])
    assert (done.stdout, "") == (quiet[1], quiet[2])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
def test_emphasis_is_for_terminals_that_want_it(path):
    """Bold titles there; none in a pipe, and none with NO_COLOR."""

    def shown(**env):
        with terminal() as (other_end, read):
            subprocess.run(
                [sys.executable, "-m", "bpk_lite", "inspect", path], stdout=other_end, check=True,
                env={key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm", **env},
            )  # fmt: skip
            return read()

    assert "\x1b[1mtensor" in shown()
    assert "\x1b[" not in shown(NO_COLOR="1")
    assert "\x1b[" not in run("inspect", path)[1]
