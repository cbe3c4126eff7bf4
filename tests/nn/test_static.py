"""A model embedded in a package is loaded without a copy."""

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import ReadError, RecordError, Tensor, Writer


class Tiny(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package with a pack in it; returns its name."""
    name = "package_with_a_pack"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    tensors = [
        Tensor.from_array("fc.weight", np.eye(2, dtype="<f4"), param_id=1),
        Tensor.from_array("fc.bias", np.array([1, 2], "<f4"), param_id=2),
    ]
    (folder / "tiny.bpk").write_bytes(Writer(tensors).plan().into_bytes())
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_static_model_computes(package):
    """`static_model` builds the module and loads the package's pack into it."""
    model = nn.static_model(Tiny, package, "tiny.bpk")
    assert [[4.0, 6.0]] == model(np.array([[3, 4]], "f4")).tolist()
    assert [1, 2] == [param.id for param in model.named_params().values()]


def test_static_model_copies_nothing(package):
    """Params stay unread until used, and are views of one buffer then."""
    model = nn.static_model(Tiny, package, "tiny.bpk")
    assert not model.fc.weight.materialised
    base = model.fc.weight.value.base
    assert base is not None
    assert not model.fc.weight.value.flags.owndata
    assert not model.fc.weight.value.flags.writeable


def test_wrong_module_is_a_record_error(package):
    """A pack that does not fit the module is refused as any other."""
    with pytest.raises(RecordError, match=r"fc\.weight"):
        nn.static_model(lambda: nn.Linear(2, 2), package, "tiny.bpk")


@pytest.mark.usefixtures("package")
def test_absent_resource_is_named():
    """A resource that does not exist is an error that names it."""
    with pytest.raises(ReadError, match=r"no\.bpk"):
        nn.static_model(Tiny, "package_with_a_pack", "no.bpk")
