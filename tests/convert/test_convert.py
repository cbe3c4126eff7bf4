"""Weights from format to format: names, layout, bytes, and what has no place there."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from bpk_lite.convert import (
    SCALARS_KEY,
    VALUES_KEY,
    convert,
    format_of,
    module_types,
    open_contents,
)
from bpk_lite.pack import (
    FormatError,
    InvalidMagicNumber,
    LimitError,
    PlanError,
    Reader,
    Scalar,
    Tensor,
    Writer,
)
from bpk_lite.store import NameCollision, PathFilter, StoreError, UnsupportedDType
from tests.pack.test_reader import unaligned
from tests.support import descriptor

TENSORS = {
    "block.0.weight": np.arange(6, dtype="<f4").reshape(2, 3),
    "block.0.bias": np.arange(2, dtype="<f4"),
    "block.1.weight": np.ones(2, "<f4"),
    "block.1.bias": np.zeros(2, "<f4"),
    "ids": np.arange(3, dtype="<i8"),
    "flag": np.array([True, False]),
}


def pack(**more):
    return Writer(TENSORS, **more).plan().into_bytes()


def through(blob, to, **options):
    """Convert bytes; the plan's size is the truth."""
    with open_contents(blob) as source:
        made = convert(source, to, **options)
        out = made.plan.into_bytes()
    assert len(out) == made.plan.size
    return out, made


def names(made):
    return {change.old: change.new for change in made.changes}


@pytest.mark.parametrize("to", ["burnpack", "safetensors", "pytorch", "npz"])
def test_there_and_back_gives_the_same_tensors(to):
    """Every tensor comes back under its name with its bytes."""
    out, _ = through(pack(), to)
    back, _ = through(out, "burnpack")
    found = Reader.from_bytes(back)
    assert set(found) == set(TENSORS)
    for name, array in TENSORS.items():
        np.testing.assert_array_equal(found[name].numpy(), array)
        assert found[name].numpy().dtype == array.dtype


def test_an_unchanged_pack_is_the_same_file():
    """Order, ids, scalars and metadata stay: byte for byte."""
    tensors = [
        Tensor.from_array("z", np.ones(3, "<f4"), param_id=5),
        Tensor.from_array("a", np.ones(2, "<f2")),
    ]
    blob = (
        Writer(tensors, metadata={"k": "v"}, scalars={"step": Scalar("Int", 3)}).plan().into_bytes()
    )
    out, made = through(blob, "burnpack")
    assert out == blob
    assert not any(change.is_change for change in made.changes)


def test_numpy_reads_what_is_written():
    out, _ = through(pack(scalars={"step": 3}), "npz")
    with np.load(io.BytesIO(out), allow_pickle=False) as found:
        assert set(found.files) == {*TENSORS, "step"}
        assert all((found[name] == array).all() for name, array in TENSORS.items())


def test_scalars_and_metadata_survive_safetensors():
    """Kinds too: an Int does not become a UInt."""
    scalars = {
        "a": Scalar("Int", 3),
        "b": Scalar("UInt", 3),
        "c": Scalar("Float", 0.5),
        "d": Scalar("Bool", True),
    }
    blob = pack(metadata={"task": "mnist"}, scalars=scalars)
    out, _ = through(blob, "safetensors")
    with open_contents(out) as source:
        assert SCALARS_KEY not in source.metadata
        assert source.scalars == scalars
    back = Reader.from_bytes(through(out, "burnpack")[0])
    assert dict(back.scalars) == scalars
    assert dict(back.metadata) == {"task": "mnist"}


def test_metadata_that_have_no_place_are_told():
    _, made = through(pack(metadata={"task": "mnist"}), "npz")
    assert made.notes == ("npz has no place for metadata: task left out",)


def test_layout_to_burn_and_back():
    """Linear weights are turned over and norms renamed; the way back gives the same file."""
    out, made = through(pack(), "burnpack", layout="pytorch-to-burn")
    assert names(made)["block.1.weight"] == "block.1.gamma"
    assert names(made)["block.1.bias"] == "block.1.beta"
    np.testing.assert_array_equal(
        Reader.from_bytes(out)["block.0.weight"].numpy(), TENSORS["block.0.weight"].T
    )
    back, _ = through(out, "burnpack", layout="burn-to-pytorch")
    assert back == pack()


@pytest.mark.parametrize(
    ("shapes", "kind"),
    [
        ({"weight": (4, 3), "bias": (4,)}, "Linear"),
        ({"weight": (4, 3)}, "Linear"),
        ({"weight": (4, 3, 3, 3)}, "Conv2d"),
        ({"weight": (4, 3, 3)}, "Conv1d"),
        ({"weight": (4, 3, 3, 3, 3)}, "Conv3d"),
        ({"weight": (4,), "bias": (4,)}, "LayerNorm"),
        ({"weight": (4,), "bias": (4,), "running_mean": (4,)}, "BatchNorm"),
        ({"weight": (4,)}, "RmsNorm"),
        ({"weight": (1,)}, "PRelu"),
        ({"gamma": (4,), "beta": (4,)}, "LayerNorm"),
        ({"gamma": (4,)}, "RmsNorm"),
        ({"gamma": (4,), "beta": (4,), "running_mean": (4,)}, "BatchNorm"),
        ({"alpha": (4,)}, "PRelu"),
        ({"something": (4, 4)}, "Other"),
    ],
)
def test_what_a_module_is_taken_for(shapes, kind):
    tensors = [Tensor.from_array(f"m.{n}", np.zeros(s, "<f4")) for n, s in shapes.items()]
    assert module_types(tensors) == {"m": kind}


@pytest.mark.parametrize(
    ("prefix", "kind"),
    [("embed_tokens", "Embedding"), ("wte", "Embedding"), ("h.wpe", "Embedding"), ("fc", "Linear")],
)
def test_embeddings_by_name_and_by_pattern(prefix, kind):
    """An embedding and a linear layer without bias have one shape; a pattern decides."""
    tensors = [Tensor.from_array(f"{prefix}.weight", np.zeros((4, 3), "<f4"))]
    assert module_types(tensors) == {prefix: kind}
    assert module_types(tensors, {prefix: "Other"}) == {prefix: "Other"}
    with pytest.raises(ValueError, match="'Lin' is not among"):
        module_types(tensors, {prefix: "Lin"})


def test_prelu_is_renamed_too():
    blob = Writer({"act.weight": np.ones(1, "<f4")}).plan().into_bytes()
    _, made = through(blob, "burnpack", layout="pytorch-to-burn")
    assert names(made) == {"act.weight": "act.alpha"}


def test_names_and_lists():
    """Patterns, then lists without gaps; kept lists keep their numbers."""
    blob = Writer({f"net.{i}.w": np.ones(1, "<f4") for i in (0, 3)}).plan().into_bytes()
    _, made = through(blob, "burnpack", remap=[(r"^net\.", "fc.")], reindex=True)
    assert names(made) == {"net.0.w": "fc.0.w", "net.3.w": "fc.1.w"}
    _, made = through(blob, "burnpack", reindex=True, keep_indices=("^net$",))
    assert names(made) == {"net.0.w": "net.0.w", "net.3.w": "net.3.w"}


def test_one_name_for_two_is_an_error():
    with pytest.raises(NameCollision, match=r"block\.0\.\w+.*block\.1\.\w+"):
        through(pack(), "burnpack", remap={r"block\.\d": "x"})


def test_a_norm_that_has_both_names_is_an_error():
    """Renamed by its type, a weight may not take the place of a gamma."""
    blob = Writer({"n.weight": np.ones(2, "<f4"), "n.gamma": np.ones(2, "<f4")}).plan()
    with pytest.raises(NameCollision, match=r"'n\.weight' and 'n\.gamma'"):
        through(blob.into_bytes(), "burnpack", layout="pytorch-to-burn")


def test_metadata_say_which_layout_a_safetensors_file_has():
    """``format`` is ``pt`` in PyTorch's layout, which its libraries ask for, and gone in Burn's."""
    out, _ = through(pack(metadata={"k": "v"}), "safetensors", layout="burn-to-pytorch")
    with open_contents(out) as source:
        assert source.metadata == {"k": "v", "format": "pt"}
    back, _ = through(out, "burnpack", layout="pytorch-to-burn")
    assert dict(Reader.from_bytes(back).metadata) == {"k": "v"}
    plain, _ = through(pack(metadata={"k": "v"}), "safetensors")
    with open_contents(plain) as source:
        assert source.metadata == {"k": "v"}


def test_booleans_stored_as_words_are_booleans_elsewhere():
    """Numpy has one kind of them."""
    words = Tensor.from_bytes("m", "Bool(U32)", (2,), np.array([1, 0], "<u4").tobytes())
    out, _ = through(Writer([words]).plan().into_bytes(), "npz")
    with np.load(io.BytesIO(out)) as found:
        assert found["m"].dtype == np.dtype(bool)
        assert found["m"].tolist() == [True, False]


def test_filter_says_what_it_left_out():
    _, made = through(pack(), "burnpack", filter=PathFilter().with_regex("^block"))
    assert made.left_out == ("flag", "ids")
    assert len(made.changes) == 4


def test_half_precision_leaves_batch_norm():
    blob = (
        Writer(
            {
                "fc.weight": np.ones((2, 3), "<f4"),
                "bn.weight": np.ones(2, "<f4"),
                "bn.running_mean": np.ones(2, "<f4"),
            }
        )
        .plan()
        .into_bytes()
    )
    _, made = through(blob, "burnpack", half=True)
    assert {c.old: c.new_dtype for c in made.changes} == {
        "fc.weight": "F16",
        "bn.weight": "F32",
        "bn.running_mean": "F32",
    }
    out, _ = through(blob, "burnpack", dtype="BF16")
    assert {str(t.dtype) for t in Reader.from_bytes(out).values()} == {"BF16"}


def test_what_a_format_lacks_is_refused():
    blob = Writer([Tensor.from_array("w", np.ones(2, "<u2"), dtype="BF16")]).plan().into_bytes()
    with pytest.raises(UnsupportedDType, match="'w' is BF16"):
        through(blob, "npz")
    with pytest.raises(NameCollision, match="'w'"):
        through(Writer({"w": np.ones(2)}, scalars={"w": 1}).plan().into_bytes(), "pytorch")


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.bpk", "burnpack"), ("a", "burnpack"), ("x.y/a", "burnpack"), ("a.safetensors", "safetensors"),
     ("a.PT", "pytorch"), ("a.pth", "pytorch"), ("a.npz", "npz"), (".hidden", "burnpack")],
)  # fmt: skip
def test_the_extension_says_the_format(path, found):
    assert format_of(path) == found


def test_an_unknown_extension_is_an_error():
    with pytest.raises(PlanError, match=r"\.h5"):
        format_of("a.h5")


@pytest.mark.parametrize(
    ("blob", "error", "text"),
    [
        (b"", InvalidMagicNumber, "no weights in it; it is an empty file"),
        (b"nonsense", InvalidMagicNumber, "no kind known"),
        (b"{}", FormatError, "weight_map"),
        (b'{"weight_map": {"a": "b.safetensors"}}', StoreError, "by its path"),
        (b"GGUF" + bytes(40), StoreError, "files only"),
        (b"<html>", InvalidMagicNumber, "HTML"),
    ],
)
def test_other_files_are_named(blob, error, text):
    with pytest.raises(error, match=text):
        open_contents(blob)


def test_a_pack_of_burn_0_19_becomes_one_of_today():
    """Only on request, since its data begin elsewhere (section 16)."""
    blob = unaligned({"a": descriptor("F32", (2,), (0, 8))}, np.array([1.5, 2.5], "<f4").tobytes())
    with pytest.raises(FormatError, match="bpk convert --unaligned"):
        open_contents(blob)
    with open_contents(blob, layout="unaligned") as source:
        out = convert(source).plan.into_bytes()
    assert Reader.from_bytes(out)["a"].numpy().tolist() == [1.5, 2.5]


def test_npz_of_any_kind():
    """Compressed, Fortran order, big-endian; objects are refused without unpickling."""
    stream = io.BytesIO()
    square = np.arange(6, dtype="<i4").reshape(2, 3)
    np.savez_compressed(
        stream, f=np.asfortranarray(square), b=square.astype(">i4"), c=np.ones(2, "c8")
    )
    with open_contents(stream.getvalue()) as source:
        assert [one.name for one in source.tensors] == ["b", "f"]
        assert all((one.numpy() == square).all() for one in source.tensors)
        assert len(source.notes) == 1
        assert "'c' is left out" in source.notes[0]
    stream = io.BytesIO()
    np.savez(stream, o=np.array([print], dtype=object))
    with open_contents(stream.getvalue()) as source:
        assert source.tensors == []
        assert "'o' is left out" in source.notes[0]


def test_an_npz_that_would_fill_the_memory_is_refused():
    """Zeros deflate a thousandfold: small ones are read, 65 MiB of them are not (bug C21)."""
    stream = io.BytesIO()
    np.savez_compressed(stream, small=np.zeros(1 << 20))
    with open_contents(stream.getvalue()) as source:
        assert source.tensors[0].nbytes == 8 << 20
    np.savez_compressed(stream := io.BytesIO(), big=np.zeros(65 << 20, "u1"))
    with pytest.raises(LimitError, match=r"big\.npy would grow"):
        open_contents(stream.getvalue())


def test_numbers_of_a_checkpoint_are_kept():
    """What is no tensor is metadata, as JSON."""
    import pickle

    blob = pickle.dumps({"epoch": 3, "model": {"lr": 0.1}}, protocol=2)
    with open_contents(blob) as source:
        assert json.loads(source.metadata[VALUES_KEY]) == {"epoch": 3, "model": {"lr": 0.1}}


def test_reading_is_left_to_the_writer():
    """Laying out reads no tensor data."""
    calls = []
    tensor = Tensor.deferred("w", "F32", (2, 2), lambda: calls.append(1) or np.ones((2, 2), "<f4"))
    from bpk_lite.convert import Contents

    made = convert(Contents("burnpack", [tensor]), "safetensors", layout="pytorch-to-burn")
    assert calls == []
    made.plan.into_bytes()
    assert calls == [1]
