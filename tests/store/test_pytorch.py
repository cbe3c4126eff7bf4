"""PyTorch checkpoints against Burn's recorded answers (S116 to S156; section C of the bugs)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from pathlib import Path

import numpy as np
import pytest

from bpk_lite.pack import BpkError, FormatError, InvalidMagicNumber, LimitError, Limits
from bpk_lite.store import NameCollision, PickleError, PytorchReader, StoreError, UnsupportedDType

FOLDER = Path(__file__).parent.parent / "fixtures" / "burn" / "store" / "pytorch"
ROWS = [json.loads(line) for line in (FOLDER / "expected.jsonl").read_text().splitlines()]

# Deliberate differences, each with its reason (docs/differences-stores.md has them too).
DIFFERS = {
    "zip_v3_float8.pt": "the other tensors are read, the float8 one is named",
    "zip_complex.pt": "likewise",
    "zip_object_tensor.pt": "likewise: an object with a tensor among its attributes",
    "zip_subclass_unknown.pt": "likewise",
    "zip_quantized.pt": "likewise",
    "zip_sparse.pt": "likewise",
    "call_wrong_module.pt": "likewise",
    "zip_crc_bad.pt": "a wrong checksum is an error, as in Burn; torch ignores it",
    "zip_big_endian.pt": "elements are swapped where the archive says big",
    "zip_key_int_text.pt": "two paths of one name are an error",
    "collision_names.pt": "likewise; Burn keeps an arbitrary one",
    "bomb_dup.pt": "shared references cost nothing, and there is no tensor in them",
    "plain_list.pkl": "a list is a container like another",
}


def opened(row):
    return PytorchReader.from_bytes(
        (FOLDER / row["file"]).read_bytes(), top_level_key=row.get("top_level_key")
    )


def described(reader):
    """Return dtype, shape and digest of every tensor, or that it cannot be read."""
    found = {}
    for name, tensor in reader.items():
        try:
            digest = hashlib.sha256(tensor.buffer()).hexdigest()
        except FormatError:
            found[name] = "error"
        else:
            found[name] = (str(tensor.dtype).replace("(Native)", ""), tensor.shape, digest)
    return found


def wanted(row):
    """Return what torch means where it is recorded, else what Burn reads; None for a refusal."""
    source = row.get("right")
    if source is None:
        source = row["burn"].get("tensors", []) if row["burn"].get("ok") else None
    return (
        None
        if source is None
        else {
            t["name"]: (t["dtype"], tuple(t["shape"]), t["sha256"]) if "sha256" in t else "error"
            for t in source
        }
    )


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['file']}:{row.get('top_level_key', '')}"
)
def test_checkpoints_are_read_as_recorded(row):
    """Names, dtypes, shapes and bytes; a refusal is a typed error, in no time."""
    start = time.perf_counter()
    try:
        with opened(row) as reader:
            found = described(reader)
    except BpkError:
        found = None
    want = wanted(row)
    assert (row["file"] in DIFFERS) == (want != found), row.get("note")
    assert time.perf_counter() - start < 2  # a bomb would take minutes; this is no benchmark


@pytest.mark.parametrize(
    ("file", "kind", "count"),
    [("zip_proto2.pt", "zip", 3), ("legacy_basic.pt", "legacy", 3), ("tar_basic.tar", "tar", 4),
     ("plain_config.pkl", "pickle", 0)],
)  # fmt: skip
def test_the_kind_is_told_by_the_first_bytes(file, kind, count):
    """Never by the extension (S116); facts of the file are there (S154)."""
    row = next(row for row in ROWS if row["file"] == file)
    with opened(row) as reader:
        assert (kind, count) == (reader.info.kind, len(reader))
        facts = row["burn"]["metadata"]
        assert facts.get("pytorch_version") == reader.info.version
        if kind == "zip":
            assert facts["total_data_size"] == reader.info.data_size


@pytest.mark.parametrize(
    ("file", "key", "error", "words"),
    [
        ("zip_checkpoint.pt", "nope", StoreError, "not found; there are epoch, "),
        ("zip_checkpoint.pt", "epoch", StoreError, "does not hold a dictionary, found int"),
        ("zip_root_int.pt", None, StoreError, "at the root of the PyTorch file, found int"),
        ("zip_byteorder_middle.pt", None, FormatError, "Unrecognized byteorder"),
        ("legacy_big_endian.pt", None, FormatError, "Big-endian"),
        ("legacy_no_flag.pt", None, FormatError, "little_endian bool"),
        ("legacy_truncated.pt", None, FormatError, "extends beyond the end of the file"),
        (
            "zip_bad_beyond_storage.pt",
            None,
            PickleError,
            "needs 5 elements, but storage '1' declares 4",
        ),
        ("zip_bad_huge_expand.pt", None, LimitError, "byte limit"),
        ("other_text.pt", None, InvalidMagicNumber, "not a PyTorch checkpoint"),
        ("other_safetensors128.pt", None, InvalidMagicNumber, "a SafeTensors file"),
        ("other_json.pt", None, InvalidMagicNumber, "JSON"),
        ("bad_setitem_on_tuple.pt", None, PickleError, "sets items of a tuple"),
        ("evil_inst.pt", None, PickleError, "INST has no place"),
        ("collision_names.pt", None, NameCollision, r"the name 'a\.b'"),
    ],
)
def test_refusals_say_what_and_where(file, key, error, words):
    """Each fault has its class and its facts (S234; bugs C10, C12, C15)."""
    with pytest.raises(error, match=words):
        PytorchReader.from_bytes((FOLDER / file).read_bytes(), top_level_key=key)


def test_errors_of_reading_name_storage_and_counts():
    """A file opens although one tensor cannot be read; the others can (S147, S148)."""
    for file, words in (
        ("zip_short_storage.pt", "only .* are available"),
        ("zip_missing_storage.pt", "missing from the archive"),
        ("zip_crc_bad.pt", "Invalid checksum"),
        ("legacy_bad_count.pt", "elements but the pickle declares"),
    ):
        with PytorchReader.from_bytes((FOLDER / file).read_bytes()) as reader:
            with pytest.raises(FormatError, match=words):
                reader["a"].numpy()
            assert reader["b"].numpy().size


def test_what_cannot_be_given_is_named_with_its_reason():
    """A float8 tensor does not cost the rest, and is not silently absent (bug C19)."""
    with PytorchReader.from_bytes((FOLDER / "zip_v3_float8.pt").read_bytes()) as reader:
        assert {"w": "elements of torch.float8_e4m3fn have no type in Burn"} == reader.unsupported
        with pytest.raises(UnsupportedDType, match="float8_e4m3fn"):
            reader["w"]


@pytest.mark.parametrize("file", sorted(p.name for p in FOLDER.glob("evil_*.pt")))
def test_nothing_in_a_file_is_ever_run(file, monkeypatch):
    """No import, no call: hostile pickles leave no trace (bugs C12, C17)."""
    import builtins

    def forbidden(*args, **_):
        raise AssertionError(args)

    for module, name in ((__import__("os"), "system"), (builtins, "eval"), (builtins, "exec")):
        monkeypatch.setattr(module, name, forbidden)
    with contextlib.suppress(BpkError):
        PytorchReader.from_bytes((FOLDER / file).read_bytes()).close()


def test_contiguous_tensors_are_views_of_the_file():
    """Stored storages are not copied; strided ones are gathered (S141 to S143; bug C1)."""
    blob = (FOLDER / "zip_strided.pt").read_bytes()
    memory = np.frombuffer(blob, np.uint8)
    with PytorchReader.from_bytes(blob) as reader:
        assert np.shares_memory(reader["row"].numpy(), memory)
        assert not np.shares_memory(reader["perm"].numpy(), memory)
        assert all(reader[name].shape == reader[name].numpy().shape for name in reader)


def test_the_size_limit_is_settable():
    """A tensor beyond it is refused on opening (S137)."""
    with pytest.raises(LimitError, match="byte limit is 8"):
        PytorchReader.from_bytes(
            (FOLDER / "zip_proto2.pt").read_bytes(), limits=Limits(tensor_bytes=8)
        )
