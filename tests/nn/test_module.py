"""Modules are plain classes: paths, order and params follow from their fields."""

import copy
import pickle
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.nn import init
from bpk_lite.pack import Reader, Writer


def scalar():
    return nn.Param((1,), init.Zeros())


def paths(module):
    return list(module.named_params())


def test_fields_come_in_order_of_assignment():
    """Fields are visited in the order of their first assignment (R15)."""

    class Net(nn.Module):
        def __init__(self):
            self.second = nn.Linear(2, 2)
            self.first = scalar()
            self.second = nn.Linear(2, 2, bias=False)

    assert ["second.weight", "first"] == paths(Net())


def test_containers_give_indices_and_options_nothing():
    """Lists and tuples give indices from 0, None gives nothing and takes no place (R14)."""

    class Net(nn.Module):
        def __init__(self):
            self.layers = [None, scalar(), scalar()]
            self.pair = (scalar(), (scalar(),))
            self.absent = None
            self.named = {"left": scalar(), "right": None}

    expected = ["layers.1", "layers.2", "pair.0", "pair.1.0", "named.left"]
    assert expected == paths(Net())


def test_vector_of_twelve_is_in_numeric_order():
    """Elements are visited by index, not by its text (R14)."""

    class Net(nn.Module):
        def __init__(self):
            self.layers = [scalar() for _ in range(12)]

    assert [f"layers.{index}" for index in range(12)] == paths(Net())


def test_variant_stands_below_its_field():
    """A variant's params lie below the field and the variant's name; only it is visited (R15)."""

    class Net(nn.Module):
        def __init__(self):
            self.block = nn.Variant("Conv", nn.Conv2d(1, 1, 1, bias=False))
            self.act = nn.Variant("Gelu", nn.Gelu())

        def forward(self, x):
            return self.act(self.block(x))

    net = Net()
    assert ["block.Conv.weight"] == paths(net)
    net.block = nn.Variant("Lin", nn.Linear(1, 1))
    assert ["block.Lin.weight", "block.Lin.bias"] == paths(net)
    assert (1, 1) == net(np.zeros((1, 1), "f4")).shape


def test_other_fields_are_ignored():
    """Numbers, texts, arrays and foreign objects are allowed and are no params (R17)."""

    class Net(nn.Module):
        def __init__(self):
            self.table = np.zeros(3)
            self.name = "net"
            self.handle = object()
            self.sizes = [1, 2, 3]
            self.by_number = {1: scalar()}
            self.weight = scalar()

    assert ["weight"] == paths(Net())


def test_field_names_rename_and_leave_out():
    """A module may name a field otherwise in the file (a raw identifier, R14) or leave it out."""

    class Net(nn.Module):
        field_names: ClassVar = {"type": "r#type", "cache": None}

        def __init__(self):
            self.type = scalar()
            self.cache = scalar()

    assert ["r#type"] == paths(Net())


def test_dataclasses_and_slots_work():
    """A module may be a dataclass or have slots; its fields are found all the same."""

    @dataclass(slots=True)
    class Slotted(nn.Module):
        b: nn.Param = field(default_factory=scalar)
        a: nn.Param = field(default_factory=scalar)

    @dataclass
    class Plain(nn.Module):
        b: nn.Param = field(default_factory=scalar)
        inner: Slotted = field(default_factory=Slotted)

    assert ["b", "inner.b", "inner.a"] == paths(Plain())


def test_shared_param_has_every_path():
    """A param in two places is listed under both paths and counted once (R19)."""

    class Net(nn.Module):
        def __init__(self):
            self.embed = nn.Param((2, 3), init.Zeros())
            self.head = self.embed

    net = Net()
    assert ["embed", "head"] == paths(net)
    assert 6 == net.num_params


def test_cycle_is_named():
    """A field that leads back to its module is an error that says how to leave it out."""

    class Net(nn.Module):
        def __init__(self):
            self.child = nn.Relu()
            self.child.parent = self

    with pytest.raises(ValueError, match=r"'child.parent' leads back .*\{'parent': None\}"):
        Net().named_params()


def test_colliding_paths_are_an_error():
    """Two params with one path are refused, because a pack cannot hold both."""

    class Net(nn.Module):
        def __init__(self):
            self.a = {"b": scalar()}
            setattr(self, "a.b", scalar())

    with pytest.raises(ValueError, match=r"the path 'a\.b'"):
        Net().named_params()


def test_tensors_come_in_traversal_order_with_ids():
    """`tensors` gives every param in order, with its id, and materialises none (R11)."""
    layer = nn.Linear(2, 3)
    tensors = layer.tensors()
    assert ["weight", "bias"] == [tensor.name for tensor in tensors]
    assert [layer.weight.id, layer.bias.id] == [tensor.param_id for tensor in tensors]
    assert not layer.weight.materialised
    assert not layer.bias.materialised


def test_same_module_gives_the_same_bytes():
    """A module saved, loaded and saved again gives the same file (R13, R89)."""
    layer = nn.Linear(3, 2, layout="Col")
    blob = Writer(layer.tensors()).plan().into_bytes()
    again = nn.Linear(3, 2, layout="Col")
    again.load_tensors(Reader.from_bytes(blob))
    again(np.ones((1, 3), "f4"))
    assert bytes(blob) == bytes(Writer(again.tensors()).plan().into_bytes())


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("state", ["declared", "loaded", "held"])
def test_modules_copy_and_pickle(clone, state):
    """A copied or pickled module computes the same, in whatever state its params are."""
    layer = nn.Linear(3, 2, layout="Col")
    if state == "loaded":
        saved = nn.Linear(3, 2, layout="Col").tensors()
        layer.load_tensors(Reader.from_bytes(Writer(saved).plan().into_bytes()))
    other = clone(layer)
    if state == "held":
        layer(np.ones((1, 3), "f4"))
        other = clone(layer)
    x = np.ones((1, 3), "f4")
    assert layer(x).tolist() == other(x).tolist()
    assert paths(layer) == paths(other)
    assert layer.weight.id == other.weight.id
    assert layer.weight is not other.weight


def test_module_without_params_is_empty():
    """A module without params gives no tensor (R89)."""
    assert [] == nn.MaxPool2d(2).tensors()


def test_call_is_forward():
    """Calling a module calls forward; a module that defines none says so."""

    class Double(nn.Module):
        def forward(self, x, *, times=2):
            return x * times

    assert 6 == Double()(3)
    assert 9 == Double()(3, times=3)
    with pytest.raises(NotImplementedError, match=r"Module defines no forward\(\)"):
        nn.Module()(1)


def test_repr_is_a_tree():
    """`repr` draws names, types, options, dtypes and shapes without materialising anything."""

    class Net(nn.Module):
        def __init__(self):
            self.conv = nn.Conv2d(1, 2, 3, padding=1)
            self.norms = [nn.BatchNorm(2)]
            self.act = nn.Variant("Relu", nn.Relu())
            self.note = "not shown"

    net = Net()
    expected = """\
Net  28 params
├─ conv: Conv2d(1 -> 2, kernel 3x3, padding 1)
│  ├─ weight: F32 [2, 1, 3, 3]
│  └─ bias: F32 [2]
├─ norms: list
│  └─ 0: BatchNorm(2, epsilon=1e-05)
│     ├─ gamma: F32 [2]
│     ├─ beta: F32 [2]
│     ├─ running_mean: F32 [2] running
│     └─ running_var: F32 [2] running
└─ act: Variant Relu
   └─ Relu: Relu"""
    assert expected == repr(net)
    assert not any(param.materialised for param in net.named_params().values())
