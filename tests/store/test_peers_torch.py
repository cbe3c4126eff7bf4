"""Checkpoints that torch writes, layer by layer and dtype by dtype (pytorch-tests, reader tests)."""

from __future__ import annotations

import io
import os
import pickle
import sys
import threading

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.desktop import open_source
from bpk_lite.pack import Limits
from bpk_lite.store import (
    ApplyError,
    KeyRemapper,
    PickleError,
    PytorchReader,
    PytorchStore,
    SafetensorsFile,
    read_pickle_data,
)
from tests.support import desktop_module

torch = desktop_module("torch")

pytestmark = [
    pytest.mark.desktop,
    pytest.mark.filterwarnings("ignore:.*quantize:UserWarning"),  # torch about its own future
]


def saved(value, **options):
    """Return the file of a value."""
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def raw(tensor):
    """Return a torch tensor's bytes in row-major order."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def drawn(layer):
    """Fill every float of a layer with numbers of its own."""
    torch.manual_seed(3)
    for name, one in layer.state_dict().items():
        if one.is_floating_point():
            one.copy_(torch.rand_like(one) + (0.5 if "var" in name else -0.5))
    return layer.eval()


tnn = torch.nn
LAYERS = {
    "linear": (tnn.Linear(4, 3), nn.Linear(4, 3), (2, 4)),
    "linear without bias": (tnn.Linear(4, 3, bias=False), nn.Linear(4, 3, bias=False), (2, 4)),
    "conv1d": (tnn.Conv1d(2, 3, 3), nn.Conv1d(2, 3, 3), (1, 2, 6)),
    "conv2d": (tnn.Conv2d(2, 3, 3, bias=False), nn.Conv2d(2, 3, 3, bias=False), (1, 2, 6, 5)),
    "conv transpose 1d": (tnn.ConvTranspose1d(2, 3, 3), nn.ConvTranspose1d(2, 3, 3), (1, 2, 6)),
    "conv transpose 2d": (tnn.ConvTranspose2d(3, 2, 2), nn.ConvTranspose2d(3, 2, 2), (1, 3, 4, 4)),
    "batch norm": (tnn.BatchNorm2d(3), nn.BatchNorm(3), (2, 3, 2, 2)),
    "layer norm": (tnn.LayerNorm(4), nn.LayerNorm(4), (2, 4)),
    "group norm": (tnn.GroupNorm(2, 4), nn.GroupNorm(2, 4), (2, 4, 3)),
    "rms norm": (tnn.RMSNorm(4, eps=1e-5), nn.RmsNorm(4), (2, 4)),
}


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_compute_what_torchs_do(name, protocol):
    """Loaded by the store, weights transposed and norms renamed, the outputs are equal (S151)."""
    theirs, ours, shape = LAYERS[name]
    drawn(theirs)
    PytorchStore(saved(theirs.state_dict(), pickle_protocol=protocol)).apply_to(ours)
    x = torch.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    wanted = theirs(x).detach().numpy()
    np.testing.assert_allclose(wanted, ours.forward(x.numpy()), rtol=1e-5, atol=1e-6)


def test_an_embedding_is_not_transposed():
    """A table stays as it is (S199)."""
    theirs, ours = drawn(tnn.Embedding(4, 3)), nn.Embedding(4, 3)
    PytorchStore(saved(theirs.state_dict())).apply_to(ours)
    assert np.array_equal(theirs.weight.detach().numpy(), ours.forward(np.arange(4)))


def test_half_precision_stays_so():
    """The param takes the file's dtype (S30)."""
    theirs, ours = drawn(tnn.Conv2d(1, 2, 3)).half(), nn.Conv2d(1, 2, 3)
    result = PytorchStore(saved(theirs.state_dict())).apply_to(ours)
    assert (("weight", "F32", "F16"), ("bias", "F32", "F16")) == result.converted
    assert raw(theirs.weight) == np.asarray(ours.weight.value, "f2").tobytes()


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint8, torch.bool, torch.uint16, torch.uint32, torch.uint64]  # fmt: skip
VIEWS = {
    "contiguous": lambda t: t,
    "channels last": lambda t: t.permute(0, 2, 3, 1),
    "transposed": lambda t: t.transpose(1, 3),
    "stepped": lambda t: t[:, ::2, 1:, ::3],
    "expanded": lambda t: t[:, :1].expand(2, 5, 2, 4),
    "overlapping": lambda t: t.as_strided((3, 4), (2, 1), 5),
    "one": lambda t: t[1, 2, 1, 3],
    "size one": lambda t: t[:, 1:2].transpose(0, 1),
    "empty": lambda t: t[:0],
    "row": lambda t: t[1, 2],
}


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_views_of_every_type_are_gathered(dtype, legacy):
    """Ten views of one storage, of thirteen element types, in both kinds of files (bugs C1, C3, C18)."""
    base = (torch.arange(48).reshape(2, 3, 2, 4) % 127).to(dtype)
    given = {name: view(base) for name, view in VIEWS.items()}
    with PytorchReader.from_bytes(
        saved(given, _use_new_zipfile_serialization=not legacy)
    ) as reader:
        assert ("legacy" if legacy else "zip") == reader.info.kind
        for name, view in given.items():
            assert (tuple(view.shape), raw(view)) == (reader[name].shape, reader[name].to_bytes())


def test_special_values_and_numbers_beside_tensors():
    """NaN and infinities bit by bit; other values are ignored, or plain (S138, S152)."""
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45, 3.4e38])
    blob = saved({"t": special, "epoch": 42, "loss": 0.5, "names": ["a"], "list": [special, 1]})
    with PytorchReader.from_bytes(blob) as reader:
        assert (["list.0", "t"], raw(special)) == (list(reader), reader["t"].to_bytes())
    found = read_pickle_data(blob)
    assert (42, 0.5, ["a"]) == (found["epoch"], found["loss"], found["names"])


class Block(tnn.Module):
    """A layer, a buffer, one that is not persistent, a plain tensor."""

    def __init__(self):
        super().__init__()
        self.fc = tnn.Linear(2, 2)
        self.register_buffer("kept", torch.arange(3))
        self.register_buffer("dropped", torch.ones(2), persistent=False)
        self.register_parameter("nothing", None)
        self.plain = torch.ones(4)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("key", [None, "model"])
def test_a_whole_module_is_its_state_dict(protocol, key):
    """Tied weights under both names; nothing of the class is imported (S149, S150; bugs C9, C11)."""
    made = tnn.Sequential(Block(), tnn.ReLU(), Block(), tnn.BatchNorm1d(2))
    made[2].fc = made[0].fc
    blob = saved(made if key is None else {key: made}, pickle_protocol=protocol)
    wanted = made.state_dict()
    with PytorchReader.from_bytes(blob, top_level_key=key) as reader:
        assert sorted(wanted) == list(reader)
        assert all(raw(one) == reader[name].to_bytes() for name, one in wanted.items())
    assert "dropped" not in str(read_pickle_data(blob, key))


def test_an_optimizers_state_is_keyed_by_numbers():
    """Integer keys become text (bug C7); numbers are plain values."""
    layer = tnn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.25)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    blob = saved({"model": layer.state_dict(), "optimizer": optimizer.state_dict()})
    with PytorchReader.from_bytes(blob) as reader:
        assert "optimizer.state.0.exp_avg" in reader
    groups = read_pickle_data(blob, "optimizer")["param_groups"]
    assert (0.25, [0, 1]) == (groups[0]["lr"], groups[0]["params"])


class Wrapped(torch.Tensor):
    """A subclass of tensors."""


def test_parameters_and_subclasses_are_tensors():
    """With attributes of their own, too (S135; bug C19)."""
    parameter = tnn.Parameter(torch.ones(2))
    parameter.note = "mine"
    wrapped = torch.zeros(3).as_subclass(Wrapped)
    wrapped.note = "mine"
    with PytorchReader.from_bytes(saved({"p": parameter, "w": wrapped})) as reader:
        assert {"p": (2,), "w": (3,)} == {name: one.shape for name, one in reader.items()}
        assert {} == reader.unsupported


def test_what_is_no_plain_tensor_is_named_beside_the_others():
    """Sparse, quantized, complex and float8 tensors do not cost the rest (bug C19)."""
    others = {
        "sparse": torch.eye(2).to_sparse(),
        "quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "complex": torch.ones(2, dtype=torch.complex64),
        "float8": torch.ones(2).to(torch.float8_e4m3fn),
    }
    with PytorchReader.from_bytes(saved({"w": torch.ones(2), **others})) as reader:
        assert ["w"] == list(reader)
        assert others.keys() == reader.unsupported.keys()


def test_a_missing_param_says_why_its_tensor_is_not_there():
    """The file has it, in a type that Burn lacks."""
    blob = saved({"weight": torch.ones(2, 2).to(torch.float8_e4m3fn), "bias": torch.ones(2)})
    with pytest.raises(ApplyError, match=r"'weight' cannot be read: elements of .*float8_e4m3fn"):
        PytorchStore(blob).apply_to(nn.Linear(2, 2))


def test_lazy_negation_is_carried_out():
    """The flag in a tensor's metadata counts; Burn ignores it (S242)."""
    negated = torch._neg_view(torch.tensor([1.0, -2.0]))
    assert negated.is_neg()
    with PytorchReader.from_bytes(saved({"w": negated})) as reader:
        assert [-1.0, 2.0] == reader["w"].numpy().tolist()


class Chain(nn.Module):
    """A list of layers."""

    def __init__(self, count):
        self.layers = [nn.Linear(2, 2) for _ in range(count)]


def test_gaps_of_a_sequence_are_closed():
    """Five layers between activations, at 0, 2, 4, 6, 8, fill a list of five (S102, S173)."""
    layers = [one for _ in range(5) for one in (drawn(tnn.Linear(2, 2)), tnn.ReLU())]
    blob = saved(tnn.Sequential(*layers).state_dict(prefix="layers."))
    made = Chain(5)
    assert 10 == len(PytorchStore(blob).apply_to(made).applied)
    wanted = layers[8].weight.detach().numpy().T
    assert np.array_equal(wanted, np.asarray(made.layers[4].weight.value))
    with pytest.raises(ApplyError, match=r"layers\.1\.weight"):
        PytorchStore(blob, map_indices_contiguous=False).apply_to(Chain(5))
    assert "layers.8.bias" in PytorchStore(blob, map_indices_contiguous=False).get_all_tensors()
    assert "layers.4.bias" in PytorchStore(blob).get_all_tensors()


def test_patterns_apply_one_after_the_other():
    """The last one sees what the earlier ones made; without it loading fails (S157, S163)."""
    state = {
        f"net.conv.blk{i}.0.{n}": t
        for i in (1, 2)
        for n, t in tnn.Linear(2, 2).state_dict().items()
    }
    patterns = [(r"^net\.", ""), (r"conv\.(.*)", "$1"), (r"blk(\d)\.0", "layers.$1")]
    made = Chain(2)
    store = PytorchStore(saved(state), remap=KeyRemapper(patterns))
    assert 4 == len(store.apply_to(made).applied)
    with pytest.raises(ApplyError, match=r"missing in source:\s+layers\.0\.bias"):
        PytorchStore(saved(state), remap=KeyRemapper(patterns[:2])).apply_to(made)


def test_a_filter_picks_what_is_loaded():
    """A predicate without biases, a pattern for one layer (S175)."""
    blob = saved(tnn.Sequential(tnn.Linear(2, 2), tnn.Linear(2, 2)).state_dict(prefix="layers."))
    result = (
        PytorchStore(blob).with_predicate(lambda p, _: not p.endswith("bias")).apply_to(Chain(2))
    )
    assert ("layers.0.weight", "layers.1.weight") == result.applied
    result = PytorchStore(blob).with_regex(r"layers\.1").apply_to(Chain(2))
    assert ("layers.1.weight", "layers.1.bias") == result.applied


# -- files


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced on Windows")
@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_an_open_checkpoint_outlives_its_file(tmp_path, new):
    """Replaced, then removed: what was opened goes on to be read (S147)."""
    path, other = tmp_path / "a.pt", tmp_path / "b.pt"
    tensor = torch.arange(5.0)
    path.write_bytes(saved({"w": tensor}, _use_new_zipfile_serialization=new))
    other.write_bytes(saved({"w": -tensor}, _use_new_zipfile_serialization=new))
    with PytorchReader.from_file(path) as reader:
        os.replace(other, path)
        assert raw(tensor) == reader["w"].to_bytes()
        path.unlink()
        assert raw(tensor) == reader["w"].to_bytes()


@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_threads_may_read_at_once(tmp_path, new):
    """Each gets its own tensors' bytes (S147)."""
    path = tmp_path / "a.pt"
    given = {str(i): torch.full((3, 5000), i, dtype=torch.int32).t() for i in range(24)}
    path.write_bytes(saved(given, _use_new_zipfile_serialization=new))
    found: dict[str, bytes] = {}
    with PytorchReader.from_file(path) as reader:

        def work(names):
            for name in names:
                found[name] = reader[name].to_bytes()

        names = list(reader)
        threads = [threading.Thread(target=work, args=(names[i::4],)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {name: raw(one) for name, one in given.items()} == found


def test_bfloat16_is_the_same_from_bytes_and_from_a_file(tmp_path):
    """In SafeTensors, where the library's numpy reader differs (bug D3)."""
    from safetensors.torch import save

    blob = save({"w": torch.tensor([1.5, -2.5, 3.5], dtype=torch.bfloat16)})
    path = tmp_path / "w.safetensors"
    path.write_bytes(blob)
    with (
        SafetensorsFile.from_bytes(blob) as one,
        SafetensorsFile(open_source(path, limits=Limits(), exact=True)) as other,
    ):
        assert one["w"].to_bytes() == other["w"].to_bytes()
        assert "BF16" == str(one["w"].dtype) == str(other["w"].dtype)


def test_python_pickles_of_tensors_say_what_is_missing():
    """A module pickled without torch.save has its storages inside, as objects (S131)."""
    with pytest.raises(PickleError, match=r"made of a torch\.storage\._load_from_bytes"):
        PytorchReader.from_bytes(pickle.dumps({"w": torch.ones(2)}, 2))
