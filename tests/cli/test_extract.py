"""extract: tensors as files, exactly, and never anywhere else than asked for (bugs B10, F1)."""

from __future__ import annotations

import json
import os

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite.cli._extract import file_name
from bpk_lite.pack import DType, QuantScheme, Tensor, Writer
from tests.cli.here import run

pytestmark = pytest.mark.desktop

WEIGHT = np.random.default_rng(0).standard_normal((3, 4)).astype("f4")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def saved(tensors, path="a.bpk"):
    return Writer(tensors).plan().write_to_file(path)


def files(folder):
    """Return every file below a folder, by path."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_arrays_are_what_numpy_loads(here):
    """Every dtype that .npy has, values, shape and type, also without dimensions or elements."""
    arrays = {
        code: (WEIGHT * 9).astype(code) for code in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1")
    } | {"bool": WEIGHT > 0, "scalar": np.array(3.5), "empty": np.zeros((0, 3), "i4")}  # fmt: skip
    saved(arrays)
    assert 0 == run("extract", "a.bpk", "*", "--to", "out")[0]
    assert [f"{name}.npy" for name in sorted(arrays)] == files(here / "out")
    for name, array in arrays.items():
        found = np.load(here / "out" / f"{name}.npy")
        assert (array.dtype, array.shape) == (found.dtype, found.shape)
        np.testing.assert_array_equal(array, found)


def test_bfloat16_becomes_float32_and_says_so(here):
    """Exactly, NaN and infinity too; .npy would make it |V2, which nothing reads (bug F1)."""
    values = np.array([1.5, -0.0, np.nan, np.inf, 3e38], ml_dtypes.bfloat16)
    saved({"w": values})
    status, out, err = run("extract", "a.bpk", "w")
    assert (0, "", True) == (status, out, "float32, exactly, of BF16" in err)
    found = np.load(here / "w.npy")
    assert np.float32 == found.dtype
    np.testing.assert_array_equal(values.astype("f4"), found)
    assert 0 == run("extract", "a.bpk", "w", "--raw")[0]
    assert values.tobytes() == (here / "w.bin").read_bytes()


def test_booleans_become_numpys(here):
    """Of every store; one that is neither 0 nor 1 is an error, and nothing is left behind."""
    values = np.array([True, False, True])
    dtypes = (DType.BOOL, DType.BOOL_U8, DType.BOOL_U32)
    saved([Tensor.from_array(f"b{i}", values, dtype=dtype) for i, dtype in enumerate(dtypes)])
    run("extract", "a.bpk", "b*")
    for i in range(3):
        found = np.load(here / f"b{i}.npy")
        assert (np.bool_, [True, False, True]) == (found.dtype, found.tolist())
    saved([Tensor.from_bytes("odd", DType.BOOL, (2,), b"\1\2")], "odd.bpk")
    status, _, err = run("extract", "odd.bpk", "odd")
    assert (2, True) == (status, "holds 2" in err)
    assert not list(here.glob("odd.n*"))
    assert 0 == run("extract", "odd.bpk", "odd", "--raw")[0]


def test_quantized_tensors_are_dequantized_where_that_can_be_told(here):
    """Native ones become float32; of packed ones only the raw bytes can be had."""
    native = DType.quantized(QuantScheme("Q8S", "Native", tensor="F32"))
    packed = DType.quantized(QuantScheme("Q4S", "PackedU32", tensor="F32"))
    blob = np.array([1, -2], np.int8).tobytes() + np.float32(0.5).tobytes()
    saved(
        [Tensor.from_bytes("n", native, (2,), blob), Tensor.from_bytes("p", packed, (2,), bytes(8))]
    )
    assert 0 == run("extract", "a.bpk", "n")[0]
    assert [0.5, -1.0] == np.load(here / "n.npy").tolist()
    status, _, err = run("extract", "a.bpk", "p")
    assert (2, True, True) == (status, "PackedU32" in err, "--raw writes its bytes" in err)
    assert 0 == run("extract", "a.bpk", "p", "--raw")[0]
    assert 8 == len((here / "p.bin").read_bytes())


def test_one_tensor_can_go_to_a_file_of_any_name(here):
    """The extension says in which form."""
    saved({"w": WEIGHT, "v": WEIGHT})
    assert 0 == run("extract", "a.bpk", "w", "--to", "mine.npy")[0]
    np.testing.assert_array_equal(WEIGHT, np.load("mine.npy"))
    assert 0 == run("extract", "a.bpk", "w", "--to", "mine.bin")[0]
    assert WEIGHT.tobytes() == (here / "mine.bin").read_bytes()
    for args in (["w", "v", "--to", "x.npy"], ["w", "--raw", "--to", "x.npy"]):
        status, _, err = run("extract", "a.bpk", *args)
        assert (2, True) == (status, err.startswith("bpk: x.npy"))
    assert not (here / "x.npy").exists()


def test_what_is_there_stays_unless_it_may_be_replaced(here):
    """`--overwrite` replaces it."""
    saved({"w": WEIGHT})
    (here / "w.npy").write_text("mine")
    status, _, err = run("extract", "a.bpk", "w")
    assert (2, True, "mine") == (status, "--overwrite" in err, (here / "w.npy").read_text())
    assert 0 == run("extract", "a.bpk", "w", "--overwrite")[0]
    np.testing.assert_array_equal(WEIGHT, np.load("w.npy"))


def test_names_and_globs_choose(here):
    """In the order given, each once; a name that nothing has is an error with a near one."""
    saved({"fc.weight": WEIGHT, "fc.bias": WEIGHT[0], "[odd]*": WEIGHT[1]})
    out = run("extract", "a.bpk", "fc.bias", "fc.*", "--json")[1]
    assert ["fc.bias", "fc.weight"] == [part["name"] for part in json.loads(out)["written"]]
    assert 0 == run("extract", "a.bpk", "[odd]*")[0]  # a name, though it looks like a glob
    status, out, err = run("extract", "a.bpk", "fc.wieght")
    assert (2, "", True) == (status, out, "did you mean 'fc.weight'?" in err)


def test_json_tells_what_was_written(here):
    """Name, path, bytes and form; stderr stays empty."""
    saved({"w": WEIGHT})
    status, out, err = run("extract", "a.bpk", "w", "--to", "out", "--json")
    path = os.path.join("out", "w.npy")
    expected = {"name": "w", "path": path, "bytes": os.path.getsize(path), "as": "float32 [3, 4]"}
    assert (0, {"written": [expected]}, "") == (status, json.loads(out), err)


def test_other_formats_give_their_tensors_too(here):
    """SafeTensors and PyTorch; a provider's tensor, as npz has, as well."""
    saved({"w": WEIGHT})
    for form in ("a.safetensors", "a.pt", "a.npz"):
        run("convert", "a.bpk", form)
        assert 0 == run("extract", form, "w", "--to", "x.npy", "--overwrite")[0]
        np.testing.assert_array_equal(WEIGHT, np.load("x.npy"))


HOSTILE = [
    "../../escape", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "C:\\x", "con", "NUL.txt", "lpt1", "a\0b",
    "a\nb", "x" * 5000, ".hidden", "-rf", "name.", "name ", "ключ", "W", "w", "a:b", "~root", "%2e%2e", "$HOME",
]  # fmt: skip


def test_no_name_becomes_a_path(here):
    """Whatever it holds, the file lies in the folder, and every tensor has its own (bug B10)."""
    (here / "deep" / "er").mkdir(parents=True)
    saved([Tensor.from_array(name, np.full(2, i)) for i, name in enumerate(HOSTILE)])
    before = files(here)
    status, out, _ = run("extract", "a.bpk", "*", "--to", "deep/er/out", "--json")
    written = json.loads(out)["written"]
    assert (0, len(HOSTILE)) == (status, len(written))
    assert len(HOSTILE) == len(files(here / "deep" / "er" / "out"))
    assert len(before) + len(HOSTILE) == len(files(here))
    for part in written:
        assert np.load(part["path"]).tolist() == [HOSTILE.index(part["name"])] * 2


@given(st.lists(st.text(max_size=30), unique=True, min_size=2, max_size=6))
def test_every_name_has_a_file_of_its_own(names):
    """Also where case does not count; and it is a plain name on every system."""
    made = [file_name(name, "npy") for name in names]
    assert len(names) == len({name.lower() for name in made})
    for name in made:
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
        assert len(name) <= 120
        assert name[0] not in ".-"
        assert name.split(".")[0].lower() not in {"con", "prn", "aux", "nul", "com1", "lpt9"}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_looks_like_anothers_file_has_another(name):
    """Nobody can choose a name whose file is a second tensor's."""
    first = file_name(name, "npy")
    assert first == f"{name}.npy" or first != file_name(first.removesuffix(".npy"), "npy")
    assert first.split(".")[0].lower() not in {"con", "nul", "lpt1"}


def test_a_plain_name_stays():
    """Only what is lost is marked."""
    assert "fc.0.weight.npy" == file_name("fc.0.weight", "npy")
    assert "a_b-c14cddc0.npy" == file_name("a/b", "npy")


def test_a_folder_that_cannot_be_is_an_error(here):
    """A file is in its place."""
    saved({"w": WEIGHT})
    (here / "out").write_text("mine")
    status, _, err = run("extract", "a.bpk", "w", "--to", "out")
    assert (2, True, "mine") == (status, "out is no folder" in err, (here / "out").read_text())
