"""`Inspector` in Python: what it takes, what it gives."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from traitlets import TraitError

import bpk_lite as bpk
from bpk_lite import nn
from bpk_lite.records import ModuleRecord
from bpk_lite_widgets import Inspector
from bpk_lite_widgets._subject import Subject

pytestmark = pytest.mark.desktop

ARRAYS = {"b": np.arange(6, dtype="f4").reshape(2, 3), "a.weight": np.ones(4, "f2")}


@pytest.fixture
def files(tmp_path):
    """The same arrays in four formats, by extension."""
    import torch
    from safetensors.numpy import save_file

    paths = {name: tmp_path / f"model.{name}" for name in ("bpk", "safetensors", "pt", "npz")}
    bpk.save_file(ARRAYS, paths["bpk"])
    save_file(ARRAYS, paths["safetensors"])
    torch.save({name: torch.from_numpy(array) for name, array in ARRAYS.items()}, paths["pt"])
    np.savez(paths["npz"], **ARRAYS)
    return paths


@pytest.mark.parametrize("extension", ["bpk", "safetensors", "pt", "npz"])
def test_a_file_of_each_format_is_taken_by_its_path(files, extension):
    """Text and path objects alike; the chosen tensor has the file's values."""
    for path in (files[extension], str(files[extension])):
        view = Inspector(path, selected="b")
        np.testing.assert_array_equal(ARRAYS["b"], np.asarray(view.tensor()))
        view.close()


def test_what_is_in_memory_is_taken_too():
    """Bytes, a reader, a record, arrays, a module of ours and one of torch."""
    import torch

    net = nn.Linear(3, 2)
    blob = bpk.save(ARRAYS)
    torch_net = torch.nn.Linear(3, 2, dtype=torch.bfloat16)
    expected = {
        "b": [blob, bytearray(blob), bpk.Reader.from_bytes(blob), bpk.BytesSource(blob), ARRAYS],
        "weight": [net, net.into_record(), torch_net],
    }

    for name, sources in expected.items():
        for source in sources:
            view = Inspector(source, selected=name)
            assert name == view.tensor().name
            view.close()


def test_a_module_of_torch_keeps_its_names_and_layout():
    """What PyTorch calls ``weight``, of shape [out, in], is so called here."""
    import torch

    net = torch.nn.Linear(3, 2)

    assert (2, 3) == Inspector(net).tensor("weight").shape


def test_other_things_are_refused_by_name():
    """A caller's mistake is a TypeError that says what was given."""
    with pytest.raises(TypeError, match="not int"):
        Inspector(7)


def test_a_file_without_weights_is_refused_with_the_reason(tmp_path):
    """The error is the reader's own (H3)."""
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind, and long enough to be looked at")

    with pytest.raises(bpk.InvalidMagicNumber, match="no weights in it"):
        Inspector(path)


def test_only_a_tensor_that_is_there_can_be_chosen():
    """`selected` is checked; None chooses nothing."""
    view = Inspector(ARRAYS)
    with pytest.raises(TraitError, match="c"):
        view.selected = "c"
    with pytest.raises(LookupError, match="no tensor is chosen"):
        view.tensor()

    view.selected = "b"

    assert "b" == view.tensor().name
    assert "a.weight" == view.tensor("a.weight").name


def test_closing_closes_what_was_opened_here_and_nothing_else(files):
    """A reader that was given stays open."""
    with bpk.open(files["bpk"]) as pack:
        given = Inspector(pack)
        given.close()
        assert 4 == pack["a.weight"].numpy().sum()

    opened = Inspector(files["safetensors"])
    tensor = opened.tensor("b")
    opened.close()
    with pytest.raises(bpk.TensorClosedError):
        tensor.numpy()


def test_where_no_widget_can_be_shown_there_is_html():
    """The bundle has the widget, the summary as HTML without a script, and as text."""
    bundle = Inspector({"<b>x": np.ones(2, "f4")})._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle

    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= set(data)
    assert "&lt;b&gt;x" in data["text/html"]
    assert "<script" not in data["text/html"]


@pytest.mark.parametrize("extension", ["bpk", "safetensors"])
def test_the_snippet_of_a_file_runs(files, extension):
    """What the widget offers to copy gives the tensor that is shown."""
    snippet = Subject.of(files[extension]).snippet
    code = f"{snippet.imports}\n{snippet.open}tensor = {snippet.item.replace('{name}', repr('b'))}"
    found: dict = {}

    exec(code, found)

    np.testing.assert_array_equal(ARRAYS["b"], np.asarray(found["tensor"]))


def test_a_record_is_called_what_it_is():
    """Not every subject is a file."""
    assert "ModuleRecord" == Subject.of(ModuleRecord()).name


def test_without_anywidget_the_extra_is_named(monkeypatch):
    """Importing the package works, for the page; the widget says what to install."""
    import bpk_lite_widgets

    monkeypatch.delitem(sys.modules, "bpk_lite_widgets._inspector")
    monkeypatch.setitem(sys.modules, "anywidget", None)

    with pytest.raises((bpk.DependencyError, ModuleNotFoundError), match="anywidget"):
        bpk_lite_widgets.Inspector  # noqa: B018  # the access imports


def test_the_wheel_has_the_assets(tmp_path):
    """Every module and the style sheet travel in the wheel (H1), and nothing but them."""
    from assembler.wheels import build

    root = Path(__file__).parents[2]
    wheel = build(root)
    (tmp_path / "w.whl").write_bytes(wheel.content)
    with zipfile.ZipFile(tmp_path / "w.whl") as archive:
        inside = {name for name in archive.namelist() if name.startswith("bpk_lite_widgets/")}
    source = root / "widgets"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "bpk_lite_widgets").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert expected == inside
    assert {"bpk_lite_widgets/static/inspector.css", "bpk_lite_widgets/static/widget.mjs"} < inside
