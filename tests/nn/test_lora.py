"""Adapters add a low-rank term to a weight, train alone and fold in (R18, R90, R115)."""

import copy
import pickle

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import DType, RecordError
from bpk_lite.records import ModuleRecord
from tests.nn.zoo import RECORDS, ZOO, Fields

X = np.array([[1, -2, 3, 0.5]], "<f4")


def record(name):
    return ModuleRecord.from_bytes((RECORDS / f"module_{name}.bpk").read_bytes())


@pytest.fixture
def adapted():
    """Burn's ``lora`` module with its values."""
    module = ZOO["lora"]()
    module.load_record(record("lora"))
    return module


def test_folding_gives_burns_weight(adapted):
    """Folding the adapter in gives the file that Burn's fold gives, under the base's id (R18)."""
    assert adapted is nn.fold_lora(adapted)
    assert record("lora_folded") == adapted.into_record()


def test_forward_uses_the_effective_weight(adapted):
    """A layer computes with base + scale · (a @ b), before folding as after (R18)."""
    a, b = adapted.weight.adapter.a.value, adapted.weight.adapter.b.value
    expected = X @ (adapted.weight.value + np.float32(2) * (a @ b)) + adapted.bias.value
    np.testing.assert_allclose(expected, adapted(X), rtol=1e-6)
    before = adapted(X)
    np.testing.assert_array_equal(before, nn.fold_lora(adapted)(X))


def test_fresh_adapter_changes_nothing():
    """The second factor is zero at first, so attaching an adapter keeps every output."""
    module = nn.Linear(4, 3)
    before = module(X)
    np.testing.assert_array_equal(before, nn.lora(module, rank=2, alpha=8)(X))
    assert 0 != np.abs(module.weight.adapter.a.value).min()


def test_paths_and_order():
    """The adapter's params come right after their base, and before the next param (R18)."""
    module = nn.lora(nn.Linear(4, 3), rank=2, alpha=1)
    expected = {"weight": (4, 3), "weight.lora.a": (4, 2), "weight.lora.b": (2, 3), "bias": (3,)}
    assert expected == {path: param.shape for path, param in module.named_params().items()}
    assert list(expected) == list(module.named_params())


def test_only_adapters_train():
    """Every param but the adapters is frozen, in the group and outside (R18)."""
    net = Fields(one=nn.Linear(2, 2), conv=nn.Conv2d(1, 1, 2), two=nn.Linear(2, 2))
    nn.lora(net, nn.ParamGroup.predicate("one"), rank=1, alpha=1)
    training = [path for path, param in net.named_params().items() if param.require_grad]
    assert ["one.weight.lora.a", "one.weight.lora.b"] == training


def test_only_float_matrices_are_adapted():
    """Vectors, kernels and integers of the group get no adapter (R18)."""
    net = Fields(
        embed=nn.Embedding(3, 2),
        conv=nn.Conv1d(1, 1, 2),
        ids=nn.Param((2, 2), nn.init.Zeros(), dtype=DType.I32),
        norm=nn.LayerNorm(2),
    )
    nn.lora(net, rank=1, alpha=1)
    adapters = [path for path in net.named_params() if ".lora." in path]
    assert ["embed.weight.lora.a", "embed.weight.lora.b"] == adapters


def test_adapter_has_the_weights_dtype():
    """An adapter of a BF16 weight is BF16, and folding rounds to BF16."""
    module = nn.lora(nn.Linear(4, 3, bias=False).cast("BF16"), rank=2, alpha=1)
    assert {DType.BF16} == {param.dtype for param in module.named_params().values()}
    module.map(lambda _path, value: np.ones_like(value))
    nn.fold_lora(module)
    assert (DType.BF16, 2.0) == (module.weight.dtype, module.weight.operand()[0, 0])


def test_plain_record_misses_the_adapter(adapted):
    """A plain record lacks two tensors; allowed, it loads the base and keeps the adapter (R90)."""
    plain = record("lora_folded")
    with pytest.raises(RecordError) as caught:
        adapted.load_record(plain)
    assert ("weight.lora.a", "weight.lora.b") == caught.value.missing
    a = adapted.weight.adapter.a.value
    adapted.load_record(plain, allow_partial=True)
    assert a is adapted.weight.adapter.a.value
    assert plain["weight"].numpy().tolist() == adapted.weight.value.tolist()


def test_adapter_alone_is_saved_and_loaded(adapted):
    """The group of ``.lora.`` holds the adapters, and loads with partial loading (R90)."""
    alone = adapted.into_record_group(nn.ParamGroup.predicate(".lora."))
    assert ["weight.lora.a", "weight.lora.b"] == list(alone.tensors)
    other = ZOO["lora"]()
    other.load_record(alone, allow_partial=True)
    assert alone == other.into_record_group(nn.ParamGroup.predicate(".lora."))


@pytest.mark.parametrize("rank", [0, -1])
def test_rank_below_one_is_refused(rank):
    """A rank of 0 is refused when the adapter is made (R115)."""
    module = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=f"from 1, not {rank}"):
        nn.lora(module, rank=rank, alpha=1)
    assert module.weight.require_grad


def test_adapting_nothing_is_refused():
    """A group without a float matrix, or one with an adapter already, changes nothing."""
    module = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="no float param of rank 2"):
        nn.lora(module, nn.ParamGroup.path("bias"), rank=1, alpha=1)
    assert module.bias.require_grad
    nn.lora(module, rank=1, alpha=1)
    with pytest.raises(ValueError, match=r"already.*\['weight'\]"):
        nn.lora(module, rank=1, alpha=1)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_adapted_modules_copy_and_pickle(adapted, clone):
    """A copy has its own adapter with the same values and ids."""
    other = clone(adapted)
    assert adapted.into_record() == other.into_record()
    assert adapted.weight.adapter is not other.weight.adapter


def test_quantized_base_is_adapted_and_folded_to_floats():
    """A quantized weight may have an adapter; folded in it is F32."""
    module = nn.Linear(4, 4, bias=False)
    module.load_record(record("quant_q8s"))
    values = module.weight.value
    nn.lora(module, rank=1, alpha=1)
    np.testing.assert_array_equal(X @ values, module(X))
    assert DType.F32 == nn.fold_lora(module).weight.dtype


def test_tree_shows_the_adapter():
    """`repr` draws the adapter below its weight."""
    assert "│  └─ lora: Lora(rank 2, scale 4)" in repr(nn.lora(nn.Linear(4, 3), rank=2, alpha=8))
