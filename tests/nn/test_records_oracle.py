"""Real Burn loads the module records that we write, and finds our values in them."""

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.nn._walk import named_params
from bpk_lite.pack import Tensor
from bpk_lite.records import ModuleRecord
from tests.nn.test_records import UNQUANTIZED, WHOLE, read
from tests.nn.zoo import ZOO, live_bytes

pytestmark = [pytest.mark.oracle, pytest.mark.desktop]


def changed(described):
    """Return a module of the zoo with values, and so bytes, that no fixture has."""
    nn.manual_seed(17)
    root, random = ZOO[described["zoo"]](), np.random.default_rng(3)
    for param in named_params(root).values():
        values = random.integers(0, 2 if param.kind == "bool" else 100, param.shape)
        scaled = values / 8 - 5 if param.kind == "float" else values
        param.value = scaled.astype(param.dtype.numpy)
    return root


def target(described):
    """Return the oracle's module to load into; its ``lora_folded`` is one still to be folded."""
    return described["zoo"].replace("lora_folded", "linear_row")


def assert_found(loaded, root):
    """Compare what Burn loaded with the module, param by param."""
    assert "ok" == loaded["outcome"]
    params = named_params(root)
    assert list(params) == [found["path"] for found in loaded["params"]]
    for found, param in zip(loaded["params"], params.values(), strict=True):
        assert (list(param.shape), param.kind) == (found["shape"], found["kind"])
        assert live_bytes(param).hex() == found["hex"]
        if not param.running:  # Burn keeps its own ids for those (R34)
            assert param.id == found["id"]


@pytest.mark.parametrize("described", UNQUANTIZED, ids=lambda d: d["zoo"])
def test_burn_loads_our_record(oracle, tmp_path, described):
    """Every kind of module, saved here with new values, has them in Burn (R11 to R20)."""
    root = changed(described)
    path = nn.into_record(root).save(tmp_path / "module")
    loaded = oracle("oracle-record", "load-module", target(described), path, "--hex")
    assert_found(loaded, root)


@pytest.mark.parametrize("described", WHOLE, ids=lambda d: d["zoo"])
def test_burn_loads_what_went_through_us(oracle, tmp_path, described):
    """Burn's own record, loaded here and saved again, is the same in Burn, quantized ones too."""
    root = ZOO[described["zoo"]]()
    nn.load_tensors(root, ModuleRecord.from_bytes(read(described)).tensors)
    path = nn.into_record(root).save(tmp_path / "module")
    loaded = oracle("oracle-record", "load-module", target(described), path, "--hex")
    assert_found(loaded, root)


QUANTIZED = [module for module in WHOLE if module not in UNQUANTIZED]


@pytest.mark.parametrize("described", QUANTIZED, ids=lambda d: d["zoo"])
def test_burn_loads_our_quantized_record(oracle, tmp_path, described):
    """Codes of ours, one byte each before the scales, and ids of ours are found in Burn (R28, R93)."""
    tensors = []
    for tensor in ModuleRecord.from_bytes(read(described)).tensors.values():
        size, data = int(np.prod(tensor.shape)), tensor.to_bytes()
        if tensor.dtype.kind == "quantized":
            data = data[:size][::-1] + data[size:]
        given = Tensor.from_bytes(tensor.name, tensor.dtype, tensor.shape, data, param_id=size)
        assert tensor.dtype.kind != "quantized" or tensor.to_bytes() != data
        tensors.append(given)
    root = ZOO[described["zoo"]]()
    nn.load_tensors(root, {tensor.name: tensor for tensor in tensors})
    path = nn.into_record(root).save(tmp_path / "module")
    loaded = oracle("oracle-record", "load-module", target(described), path, "--hex")
    assert_found(loaded, root)


def test_every_module_that_burn_knows_is_tried(oracle):
    """The zoo of modules is the one of the tables here."""
    assert set(ZOO) == set(oracle("oracle-record", "names")["modules"])
    assert len(ZOO) == len(UNQUANTIZED) + len(QUANTIZED)


@pytest.mark.parametrize("dtype", ["F64", "F16", "BF16"])
def test_burn_loads_cast_modules(oracle, tmp_path, dtype):
    """A module cast here has the same dtype and bits in Burn, and casts back as here (R28, R29)."""
    root = changed(next(m for m in WHOLE if m["zoo"] == "mlp")).cast(dtype)
    path = root.save(tmp_path / "module")
    loaded = oracle("oracle-record", "load-module", "mlp", path, "--hex")
    assert_found(loaded, root)
    back = oracle("oracle-record", "load-module", "mlp", path, "--hex", "--cast-to-module")
    assert_found(back, root.cast("F32"))


def test_burn_refuses_what_we_refuse(oracle, tmp_path):
    """A group record alone is missing params in Burn as well, and loads partially (R21)."""
    root = changed(next(m for m in WHOLE if m["zoo"] == "mlp"))
    path = root.into_record_group(nn.ParamGroup.predicate("weight")).save(tmp_path / "weights")
    assert "error" == oracle("oracle-record", "load-module", "mlp", path)["outcome"]
    part = oracle("oracle-record", "load-module", "mlp", path, "--hex", "--allow-partial")
    found = {p["path"]: p["hex"] for p in part["params"] if "weight" in p["path"]}
    assert {
        path: live_bytes(param).hex()
        for path, param in root.named_params().items()
        if "weight" in path
    } == found
