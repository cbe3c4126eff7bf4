"""What the public tests of burn-store check and the recordings here do not have."""

from __future__ import annotations

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import DType, Tensor
from bpk_lite.store import (
    BurnpackStore,
    Context,
    FloatCastAdapter,
    HalfPrecisionAdapter,
    KeyRemapper,
    PathFilter,
    PytorchStore,
    PyTorchToBurnAdapter,
    SafetensorsPlan,
    SafetensorsStore,
    StoreError,
    apply,
    collect,
    load_from,
    save_into,
)
from tests.store.zoo import digest, module, state

BOTH = pytest.mark.parametrize("kind", [BurnpackStore, SafetensorsStore])
NAMES = ["head.weight", "layers.0.bias", "layers.0.weight", "layers.1.bias", "layers.1.weight"]


class Net(nn.Module):
    """A network with an optional part, a list with a gap, and a norm."""

    def __init__(self) -> None:
        self.encoder = [nn.Linear(3, 4), nn.Relu(), nn.Linear(4, 4)]
        self.norm = nn.LayerNorm(4)
        self.extra: nn.Linear | None = None
        self.head = nn.Linear(4, 2, bias=False)

    def forward(self, x):
        for layer in self.encoder:
            x = layer.forward(x)
        return self.head.forward(self.norm.forward(x))


def test_the_defaults_are_burns():
    """Strict stores; only the PyTorch one drops variants and numbers lists anew (S48, S77, S102)."""
    for kind in (BurnpackStore, SafetensorsStore, PytorchStore):
        store = kind()
        of_torch = kind is PytorchStore
        assert (True, False, False) == (store.validate, store.allow_partial, store.overwrite)
        assert (of_torch, of_torch) == (store.skip_enum_variants, store._maps_indices)
        assert (None, (), ()) == (store.filter, store.remap.patterns, store.keep_indices)
    assert (True, None) == (BurnpackStore().auto_extension, PytorchStore().top_level_key)


def test_builders_keep_what_was_set():
    """Each returns a changed copy; a chain has all settings (S37, S52, S79, S103)."""
    first = PytorchStore("a.pt", allow_partial=True, validate=False)
    store = (
        first.with_top_level_key("model")
        .with_regex("^a")
        .with_regexes(["^b", "^c"])
        .with_full_path("x")
        .with_full_paths(["y", "z"])
        .with_predicates([lambda path, _: path == "w"])
        .with_key_remapping("^m", "n")
        .with_key_remapping("^o", "p")
    )
    assert ("a.pt", True, False, "model") == (
        store.source, store.allow_partial, store.validate, store.top_level_key,
    )  # fmt: skip
    assert 7 == store.filter.criteria_count
    assert (("^m", "n"), ("^o", "p")) == store.remap.patterns
    assert (None, ()) == (first.filter, first.remap.patterns)
    replaced = store.with_filter(PathFilter()).with_remapper(KeyRemapper())
    assert (True, ()) == (replaced.filter.is_empty, replaced.remap.patterns)
    assert ((), True) == (replaced.filter.regex, store.match_all().filter.everything)


def test_pytorch_files_are_not_written():
    """The store is for reading (S100)."""
    with pytest.raises(StoreError, match="not supported"):
        PytorchStore().collect_from(Net())


@BOTH
def test_a_listing_is_sorted_lazy_and_blind_to_filters(kind):
    """Names, single tensors, an unknown name, the same listing again (S38 to S40, S43)."""
    blob = kind().collect_from(module("mlp", 1))
    store = kind(blob, filter=PathFilter("^head"))
    assert NAMES == store.keys() == list(store.get_all_tensors())
    assert store.get_tensor("head.weight") is store.get_all_tensors()["head.weight"]
    assert ((4, 2), "F32") == (
        store.get_tensor("head.weight").shape, str(store.get_tensor("head.weight").dtype),
    )  # fmt: skip
    assert store.get_tensor("nope") is None
    store.get_all_tensors().clear()
    assert NAMES == store.keys()


@BOTH
def test_after_remapping_only_the_new_name_is_there(kind):
    """In the listing as in loading (S41)."""
    blob = kind().collect_from(module("mlp", 1))
    store = kind(blob).with_key_remapping("^head", "tail")
    assert store.get_tensor("head.weight") is None
    assert "tail.weight" == store.get_tensor("tail.weight").name
    assert "head.weight" in kind(blob).keys()  # noqa: SIM118  # a list of names, not a mapping


def test_changed_options_change_the_listing():
    """A listing is never older than the options, in any store (S42)."""
    made = Net()
    blob = SafetensorsStore().collect_from(made)
    store = SafetensorsStore(blob)
    assert "encoder.2.weight" in store.get_all_tensors()
    mapped = SafetensorsStore(blob, map_indices_contiguous=True)
    assert "encoder.1.weight" in mapped.get_all_tensors()
    kept = SafetensorsStore(blob, map_indices_contiguous=True, keep_indices="^encoder$")
    assert store.keys() == kept.keys()
    burnpack = BurnpackStore(BurnpackStore().collect_from(made))
    assert "head.weight" in burnpack.get_all_tensors()
    assert "tail.weight" in burnpack.with_remap_pattern("head", "tail").get_all_tensors()


@BOTH
def test_outputs_survive_a_round_trip(kind):
    """Other weights before, the same after; save_into and load_from are the methods (S37)."""
    nn.manual_seed(1)
    saved, loaded = Net(), Net()
    x = np.arange(6, dtype="f4").reshape(2, 3)
    assert not np.allclose(saved.forward(x), loaded.forward(x))
    result = load_from(loaded, kind(save_into(saved, kind())))
    assert (7, True) == (len(result.applied), result.is_success)
    assert np.array_equal(saved.forward(x), loaded.forward(x))


def test_an_optional_part_adds_no_level():
    """Absent it has no names; present it has those of what it is (S1)."""
    made = Net()
    without = [tensor.name for tensor in collect(made)]
    made.extra = nn.Linear(2, 2)
    assert {"extra.weight", "extra.bias"} == {t.name for t in collect(made)} - set(without)
    assert "encoder.1" not in {name.rpartition(".")[0] for name in without}


@BOTH
def test_criteria_of_a_filter_unite_when_saving(kind):
    """A pattern, exact paths and a function of path and containers (S175, S177)."""
    chosen = (
        PathFilter()
        .with_regex(r"^layers\.1")
        .with_full_paths(["head.weight"])
        .with_predicate(lambda path, _: path == "layers.0.bias")
    )
    store = kind(filter=chosen)
    store.collect_from(module("mlp", 1))
    assert [name for name in NAMES if name != "layers.0.weight"] == store.keys()
    linear = kind().with_predicate(lambda _, containers: containers.endswith("Vec.Struct:Linear"))
    linear.collect_from(module("mlp", 1))
    assert [name for name in NAMES if "layers" in name] == linear.keys()
    assert 5 == len(kind(kind().match_all().collect_from(module("mlp", 1))).keys())


@BOTH
def test_a_part_loads_into_the_whole(kind):
    """What the file lacks stays as it was, if that is allowed (S110, S220)."""
    blob = kind(filter=PathFilter("^layers")).collect_from(module("mlp", 1))
    made = module("mlp", 99)
    before, wanted = state(made), state(module("mlp", 1))
    result = kind(blob, allow_partial=True).apply_to(made)
    assert (4, (("head.weight", "Struct:Mlp.Struct:Linear"),)) == (
        len(result.applied), result.missing,
    )  # fmt: skip
    after = state(made)
    assert before["head.weight"] == after["head.weight"]
    assert all(wanted[name][1] == after[name][1] for name in NAMES[1:])


def test_weights_move_from_model_to_model():
    """Collect with a filter, apply with it: ids travel, the rest is skipped (S218, S219)."""
    source, target = module("mlp", 1), module("mlp", 99)
    chosen = PathFilter("^layers")
    before = state(target)
    result = apply(target, collect(source, chosen), chosen)
    assert (("head.weight",), (), ()) == (result.skipped, result.missing, result.unused)
    after = state(target)
    assert {**state(source), "head.weight": before["head.weight"]} == after


def test_pytorchs_bfloat16_goes_into_a_half_precision_model():
    """Layout first, then the cast (S212, S221)."""
    like = module("mlp", 1)
    bf16 = FloatCastAdapter.to("BF16")
    blob = SafetensorsStore(to_adapter=PyTorchToBurnAdapter().chain(bf16)).collect_from(like)
    made = module("mlp", 99)
    f16 = FloatCastAdapter.to(DType.F16)
    SafetensorsStore(blob, from_adapter=PyTorchToBurnAdapter().chain(f16)).apply_to(made)
    wanted = {t.name: digest(t) for t in collect(like, adapter=bf16.chain(f16))}
    assert wanted == {name: sha for name, (_, sha, _) in state(made).items()}
    assert {"F16"} == {dtype for dtype, _, _ in state(made).values()}


def test_half_precision_rounds_to_even_and_overflows_to_infinity():
    """As IEEE says (S209)."""
    given = np.array([1 + 2**-11, 1 + 3 * 2**-11, 65519.0, 65520.0, -1e6, 1e-8], "f4")
    tensor = Tensor.from_array("fc.weight", given)
    found = HalfPrecisionAdapter().adapt(tensor, Context(("Struct:Linear",)))
    wanted = np.array([1, 1 + 2**-9, 65504, np.inf, -np.inf, 0], "f2")
    assert np.array_equal(wanted, found.numpy())


@pytest.mark.parametrize("code", ["f8", "f4", "f2", "i8", "i2", "u1", "?"])
def test_linear_weights_of_any_type_are_transposed(code):
    """Values move, not just the shape; twice is what it was (S195, S203)."""
    given = np.arange(6).reshape(2, 3).astype(code)
    context = Context(("Struct:Net", "Vec", "Struct:Linear"))
    once = PyTorchToBurnAdapter().adapt(Tensor.from_array("0.weight", given), context)
    assert np.array_equal(given.T, once.numpy())
    assert np.array_equal(given, PyTorchToBurnAdapter().adapt(once, context).numpy())


def test_no_module_type_no_conversion():
    """Collections alone are none; they are passed over otherwise (S5, S194)."""
    assert (None, None) == (Context().module_type, Context(("Vec", "Tuple")).module_type)
    assert "Enum:A" == Context(("Struct:M", "Enum:A", "Vec")).module_type
    tensor = Tensor.from_array("0.weight", np.ones((2, 3), "f4"))
    for adapter in (PyTorchToBurnAdapter(), HalfPrecisionAdapter()):
        assert tensor is adapter.adapt(tensor, Context(("Vec",)))


def strided():
    """Yield arrays whose elements do not lie in row-major order."""
    base = np.arange(24, dtype="f4").reshape(2, 3, 4)
    yield "column-major", np.asfortranarray(base)
    yield "permuted", base.transpose(2, 0, 1)
    yield "reversed", base[::-1, :, ::-1]
    yield "stepped", base[:, ::2, 1::2]
    yield "broadcast", np.broadcast_to(base[:, :1], (2, 5, 4))
    yield "big-endian", base.astype(">f4")


@BOTH
@pytest.mark.parametrize(("name", "array"), list(strided()), ids=lambda v: str(v)[:12])
def test_arrays_of_any_strides_are_written_right(kind, name, array):
    """Negative ones and broadcasts too (bug D1)."""
    param = nn.Param(array.shape, nn.init.Zeros())
    param.value = array
    store = kind()
    store.collect_from([param])
    assert np.array_equal(array, store.get_tensor("0").numpy())
    blob = SafetensorsPlan.of([Tensor.from_array("t", array)]).into_bytes()
    assert np.array_equal(array, SafetensorsStore(blob).get_tensor("t").numpy())


def test_extreme_values_survive_safetensors():
    """Limits of every element type, NaN and infinities, bit by bit."""
    arrays = [np.array([np.finfo(c).min, np.finfo(c).max, np.finfo(c).tiny, np.nan, np.inf, -0.0], c)
              for c in ("f8", "f4", "f2")]  # fmt: skip
    arrays += [np.array([np.iinfo(c).min, np.iinfo(c).max], c) for c in
               ("i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1")]  # fmt: skip
    given = {f"t.{array.dtype.str}": array for array in arrays}
    plan = SafetensorsPlan.of([Tensor.from_array(name, array) for name, array in given.items()])
    found = SafetensorsStore(plan.into_bytes()).get_all_tensors()
    assert {n: a.tobytes() for n, a in given.items()} == {n: t.to_bytes() for n, t in found.items()}


@pytest.mark.parametrize("dtype", ["Bool(U8)", "Bool(U32)"])
def test_booleans_of_other_stores_come_back_into_a_boolean_param(dtype):
    """They are integers in SafeTensors; every one but 0 is true (S30, S97, S98)."""
    kind = DType.parse(dtype)
    raw = np.array([0, 1, 2], f"<u{kind.itemsize}").tobytes()
    blob = SafetensorsPlan.of([Tensor.from_bytes("0", kind, (3,), raw)]).into_bytes()
    param = nn.Param((3,), nn.init.Zeros(), dtype=DType.BOOL)
    assert ("U8" if dtype == "Bool(U8)" else "U32") == str(
        SafetensorsStore(blob).get_tensor("0").dtype
    )
    assert SafetensorsStore(blob).apply_to([param]).is_success
    assert (DType.BOOL, b"\0\1\1") == (param.dtype, param.tensor("0").to_bytes())


def test_what_is_no_module_is_refused():
    """A dict of arrays, say."""
    with pytest.raises(StoreError, match=r"a dict is no module of bpk_lite\.nn or PyTorch"):
        BurnpackStore().collect_from({"w": np.ones(1)})
