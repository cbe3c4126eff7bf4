"""The extension rules (C85, C103, C115, C117, C124)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.desktop import reading_path, writing_path
from bpk_lite.pack import Reader, ReadError, WriteError


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("model", "model.bpk"), ("model.bpk", "model.bpk"), ("v1.0", "v1.0"), (".hidden", ".hidden.bpk"),
        ("model.", "model."), ("a.b/model", "a.b/model.bpk"), (".hidden.x", ".hidden.x"),
        (Path("model"), "model.bpk"),
    ],
)  # fmt: skip
def test_writing_appends_the_extension_where_there_is_none(given, written):
    """C103's examples; a leading dot is no extension, an empty one is."""
    assert written == str(writing_path(given)) or str(Path(written)) == str(writing_path(given))
    assert str(Path(given)) == str(writing_path(given, extension=False))


@pytest.mark.parametrize("given", ["/", "..", "a/..", "", ".", "a/"])
def test_paths_without_a_final_component_are_refused(given):
    """They name no file (C115)."""
    with pytest.raises(WriteError, match="is not a file path"):
        writing_path(given)


def test_reading_prefers_what_exists(tmp_path, monkeypatch):
    """An existing extension-less file wins over its .bpk sibling (C85); exact never looks (C124)."""
    monkeypatch.chdir(tmp_path)
    bpk.save_file({"a": np.ones(1)}, "model")
    assert "model.bpk" == str(reading_path("model"))
    assert ["a"] == list(bpk.load_file("model"))
    assert "model" == str(reading_path("model", exact=True))
    with pytest.raises(ReadError, match="cannot read model: No such file"):
        Reader.from_file("model", exact=True)
    bpk.Writer({"b": np.ones(1)}).plan().write_to_file("model", extension=False)
    assert ["b"] == list(bpk.load_file("model"))
    assert "other.bpk" == str(reading_path("other"))


def test_writing_appends_even_beside_an_extension_less_file(tmp_path):
    """Unlike reading, writing never takes the extension-less file (C103)."""
    (tmp_path / "model").write_text("mine")
    assert str(tmp_path / "model.bpk") == bpk.save_file({"a": np.ones(1)}, tmp_path / "model")
    assert "mine" == (tmp_path / "model").read_text()
