"""Where stores write: extensions, existing files, links, a file that appears meanwhile (S50 to S63)."""

from __future__ import annotations

import os
import stat
import sys

import numpy as np
import pytest

from bpk_lite import __version__
from bpk_lite.pack import AlreadyExists, ProviderError, Reader, ReadError, Tensor
from bpk_lite.store import Adapter, BurnpackStore, SafetensorsFile, SafetensorsStore, StoreError
from tests.store.test_stores_burn import STORES, options
from tests.store.zoo import digest, module, rows, state

pytestmark = pytest.mark.desktop

PATHS = [row for row in rows("files") if "path" in row]
EXISTING = [row for row in rows("files") if "existing" in row]
BOTH = pytest.mark.parametrize("kind", [BurnpackStore, SafetensorsStore])


def store_for(row, path):
    """Return the store of a recorded command line."""
    given = [word for word in row["options"] if word != "--no-auto-extension"]
    extension = {"auto_extension": False} if len(given) < len(row["options"]) else {}
    return STORES[row["format"]](path, **options(given, row["format"]), **extension)


def loads(store):
    """Return whether a store fills a module."""
    try:
        return bool(store.apply_to(module("linear", 99)).applied)
    except ReadError:
        return False


@pytest.mark.parametrize(
    "row", PATHS, ids=lambda row: f"{row['format']}-{row['path']}{row['options']}"
)
def test_the_extension_is_appended_as_burn_does(row, tmp_path):
    """What is created, and which settings find it again (S50, S51, S76)."""
    store = store_for(row, tmp_path / row["path"])
    made = module(row["zoo"], 1)
    assert str(tmp_path / row["created"][0]) == store.collect_from(made)
    assert row["created"] == os.listdir(tmp_path)
    assert row["load_same"] == loads(store)
    if row["format"] == "burnpack":
        other = BurnpackStore(tmp_path / row["path"], auto_extension=not store.auto_extension)
        # a name without extension is tried as it is too, where Burn looks for `model.bpk` alone
        found_here = row["created"] == ["model"]
        assert (row["load_other"] or found_here) == loads(other)


def test_a_store_reads_what_it_wrote(tmp_path):
    """A file `net` beside the `net.bpk` that was saved is not taken for it (S45, S50)."""
    (tmp_path / "net").write_bytes(b"something else")
    store = BurnpackStore(tmp_path / "net")
    store.collect_from(module("linear", 1))
    assert ["bias", "weight"] == store.keys()


@pytest.mark.parametrize("row", EXISTING, ids=lambda row: f"{row['format']}{row['options']}")
def test_an_existing_file_is_replaced_only_when_asked(row, tmp_path):
    """Without `overwrite` the file stays as it is, and the error names it and the option (S59, S84)."""
    path = tmp_path / row["existing"]
    path.write_bytes(b"old")
    store = store_for(row, path)
    if row["save"]["ok"]:
        store.collect_from(module(row["zoo"], 1))
        assert loads(store)
    else:
        with pytest.raises(AlreadyExists, match=f"(?s){path.name}.*overwrite"):
            store.collect_from(module(row["zoo"], 1))
        assert b"old" == path.read_bytes()
    assert [row["existing"]] == os.listdir(tmp_path)


@BOTH
def test_a_refused_save_reads_no_param(kind, tmp_path):
    """The guard comes before any data is made (S59)."""
    path = tmp_path / "net.bin"
    path.write_bytes(b"old")
    with pytest.raises(AlreadyExists):
        kind(path, to_adapter=Failing()).collect_from(module("mlp", 1))


@BOTH
def test_a_dangling_link_is_something_at_the_destination(kind, tmp_path):
    """It is not written through, and stays (S59)."""
    path = tmp_path / "net.bin"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(AlreadyExists):
        kind(path).collect_from(module("mlp", 1))
    assert (["net.bin"], True) == (os.listdir(tmp_path), path.is_symlink())


class Failing(Adapter):
    """Gives tensors whose data cannot be made; `before` runs when they are asked for."""

    def __init__(self, before=lambda: None):
        self.before = before

    def adapt(self, tensor, context):
        def provider():
            self.before()
            raise OSError("the disk of the source is gone")

        return Tensor.deferred(tensor.name, tensor.dtype, tensor.shape, provider)


@BOTH
def test_a_failing_save_names_the_tensor_and_leaves_the_old_file(kind, tmp_path):
    """No scratch file is left either (S61, S85)."""
    path = tmp_path / "net.bin"
    path.write_bytes(b"old")
    with pytest.raises(
        ProviderError, match=r"tensor '[\w.]+' failed: OSError: the disk of the source is gone"
    ):
        kind(path, to_adapter=Failing(), overwrite=True).collect_from(module("mlp", 1))
    assert (b"old", ["net.bin"]) == (path.read_bytes(), os.listdir(tmp_path))


class Planting(Adapter):
    """Makes a file appear while the tensors are written."""

    def __init__(self, path):
        self.path = path

    def adapt(self, tensor, context):
        def provider():
            self.path.write_bytes(b"theirs")
            return np.zeros(tensor.shape, "f4")

        return Tensor.deferred(tensor.name, "F32", tensor.shape, provider)


@BOTH
def test_a_file_that_appears_meanwhile_survives(kind, tmp_path):
    """The finished file is not put over it (S237)."""
    path = tmp_path / "net.bin"
    with pytest.raises(AlreadyExists):
        kind(path, to_adapter=Planting(path)).collect_from(module("mlp", 1))
    assert (b"theirs", ["net.bin"]) == (path.read_bytes(), os.listdir(tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
@BOTH
def test_the_mode_of_a_replaced_file_is_kept(kind, tmp_path):
    """A private checkpoint stays private (S62)."""
    path = tmp_path / "net.bin"
    path.write_bytes(b"old")
    path.chmod(0o600)
    kind(path, overwrite=True).collect_from(module("mlp", 1))
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


@BOTH
def test_a_save_over_the_file_that_fills_the_module(kind, tmp_path):
    """Loaded lazily, changed names, saved onto itself: the values are right (bug D10)."""
    path = tmp_path / "net.bin"
    made = module("mlp", 1)
    wanted = state(made)
    kind(path).collect_from(made)
    again, store = module("mlp", 99), kind(path, overwrite=True)
    views = store.get_all_tensors()
    store.apply_to(again)
    store.collect_from(again)
    assert {n: s[1] for n, s in wanted.items()} == {n: digest(t) for n, t in views.items()}
    assert {n: s[1] for n, s in wanted.items()} == {
        n: digest(t) for n, t in kind(path).get_all_tensors().items()
    }


@BOTH
def test_a_missing_file_is_noticed_at_first_use(kind, tmp_path):
    """Not when the store is made (S44, S95)."""
    store = kind(tmp_path / "none.bin")
    for use in (store.keys, lambda: store.apply_to(module("mlp", 1))):
        with pytest.raises(ReadError, match=r"none\.bin"):
            use()


@BOTH
def test_bytes_of_a_file_store_are_refused(kind, tmp_path):
    """And those of a memory store that has none yet (S56, S71, S80)."""
    store = kind(tmp_path / "net.bin")
    store.collect_from(module("mlp", 1))
    with pytest.raises(StoreError, match="is a file"):
        store.get_bytes()
    for use in (kind().get_bytes, kind().keys, lambda: kind().apply_to(module("mlp", 1))):
        with pytest.raises(StoreError, match="nothing was written yet"):
            use()


@BOTH
def test_a_changed_copy_has_what_was_written_to_memory(kind):
    """A builder's result goes on with the bytes; the first store is not changed (S40)."""
    store = kind()
    blob = store.collect_from(module("linear", 1))
    other = store.with_key_remapping("weight", "w")
    assert blob == other.get_bytes()
    assert ["bias", "w"] == other.keys()
    assert ["bias", "weight"] == store.keys()


@BOTH
def test_memory_knows_no_overwriting(kind):
    """A memory store is written as often as one likes, and lists what it has (S45, S80)."""
    store = kind()
    first = store.collect_from(module("mlp", 1))
    assert store.keys() == kind(first).keys()
    second = store.collect_from(module("linear", 1))
    assert (["bias", "weight"], second) == (store.keys(), store.get_bytes())
    assert first != second


@BOTH
def test_a_file_that_was_saved_can_be_used_through_the_same_store(kind, tmp_path):
    """Saving again refreshes the listing (S42, S45)."""
    store = kind(tmp_path / "net.bin", overwrite=True)
    store.collect_from(module("mlp", 1))
    assert "head.weight" in store.get_all_tensors()
    store.collect_from(module("linear", 1))
    assert ["bias", "weight"] == store.keys()
    assert store.apply_to(module("linear", 99)).applied == ("weight", "bias")


@BOTH
def test_metadata_are_what_was_asked_for(kind):
    """Three defaults; a key replaces one; cleared ones stay away; more may follow (S49, S78)."""

    def read(store):
        blob = store.collect_from(module("linear", 1))
        return dict(
            (SafetensorsFile if kind is SafetensorsStore else Reader).from_bytes(blob).metadata
        )

    defaults = kind.default_metadata()
    assert {"format": kind.FORMAT, "producer": "bpk_lite", "version": __version__} == defaults
    assert {**defaults, "version": "7"} == read(kind().with_metadata("version", "7"))
    assert {} == read(kind().clear_metadata())
    assert {"k": "v"} == read(kind().clear_metadata().with_metadata("k", "v"))
