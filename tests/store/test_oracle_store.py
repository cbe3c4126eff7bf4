"""Real Burn loads and lists what our stores write (S58 to S67, S82 to S92, S203, S217)."""

from __future__ import annotations

import pytest

from bpk_lite.store import (
    BurnpackStore,
    BurnToPyTorchAdapter,
    HalfPrecisionAdapter,
    IdentityAdapter,
    SafetensorsStore,
    collect,
)
from tests.store.zoo import LAYOUTS, digest, module

pytestmark = [pytest.mark.oracle, pytest.mark.desktop]

STORES = {"burnpack": BurnpackStore, "safetensors": SafetensorsStore}
MODULES = [*sorted(LAYOUTS), "ints_no_u16"]
# a used column linear refuses its own file in Burn, an unused one takes it (S236)
LOADED_AS = {"linear_col": "linear_col_lazy"}
# how it is written; how Burn is asked to load it; what its params hold then, seen from our module
WAYS = {
    "plain": (IdentityAdapter(), [], IdentityAdapter()),
    "torch": (BurnToPyTorchAdapter(), ["--from-adapter", "pytorch"], IdentityAdapter()),
    "half": (HalfPrecisionAdapter(), [], HalfPrecisionAdapter()),
    "half and back": (
        HalfPrecisionAdapter(), ["--half"], HalfPrecisionAdapter().chain(HalfPrecisionAdapter())
    ),
}  # fmt: skip
# Burn's reader and writer of SafeTensors have neither (S96, S97)
NO_SAFETENSORS = {"ints", "quant"}
CASES = [
    (name, format, way)
    for name in MODULES
    for format in STORES
    for way in WAYS
    if format == "burnpack" or name not in NO_SAFETENSORS
]


def short(dtype):
    """Return the name of a dtype; the scheme of quantized ones is written in two ways."""
    return str(dtype)[:6]


def written(path, name, format, way):
    """Write a module of the zoo with our store; return the store and the module."""
    made = module(name, 1)
    store = STORES[format](path, to_adapter=WAYS[way][0])
    assert str(path) == str(store.collect_from(made))
    return store, made


def test_the_zoo_here_is_that_of_burn(oracle):
    """Every module of the oracle is tried."""
    assert set(oracle("oracle-store", "zoo")) <= set(MODULES)


@pytest.mark.parametrize(("name", "format", "way"), CASES)
def test_burn_loads_what_we_write(oracle, tmp_path, name, format, way):
    """Every param is applied, none is left over; dtypes, shapes, bytes and ids are ours."""
    path = tmp_path / f"ours.{format}"
    _, made = written(path, name, format, way)
    answer = oracle("oracle-store", "load", LOADED_AS.get(name, name), format, path, *WAYS[way][1])
    result = answer["result"]
    assert [[], [], [], []] == [result[k] for k in ("errors", "missing", "skipped", "unused")]
    ours, before = collect(made, adapter=WAYS[way][2]), collect(module(name, 99))
    assert len(ours) == len(result["applied"])
    for want, old, found in zip(ours, before, answer["params"], strict=True):
        assert (want.name, short(want.dtype), list(want.shape), digest(want)) == (
            found["name"], short(found["dtype"]), found["shape"], found["sha256"],
        )  # fmt: skip
        running = want.name.rpartition(".")[2] in ("running_mean", "running_var")
        if format == "safetensors" or running:
            # the target's own, which is random while a module is unused (S31, S92)
            assert name in LOADED_AS or int(old.param_id) == found["param_id"]
        else:
            assert int(want.param_id) == found["param_id"]


@pytest.mark.parametrize(("name", "format", "way"), CASES)
def test_burn_lists_what_we_list(oracle, tmp_path, name, format, way):
    """The same names in the same order, dtypes, shapes, bytes, and ids where there are some."""
    path = tmp_path / f"ours.{format}"
    store, _ = written(path, name, format, way)
    theirs = oracle("oracle-store", "tensors", format, path)["tensors"]
    assert [
        (t.name, short(t.dtype), list(t.shape), t.nbytes, digest(t),
         None if t.param_id is None else int(t.param_id))
        for t in store.get_all_tensors().values()
    ] == [
        (t["name"], short(t["dtype"]), *(t[k] for k in ("shape", "nbytes", "sha256")),
         t.get("param_id"))
        for t in theirs
    ]  # fmt: skip
