"""Settings beside the tensors: what a pickle holds, and as what types (S152, S153, S239 to S243)."""

from __future__ import annotations

import json
import math
import pickle
from collections import defaultdict
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any, Optional

import numpy as np
import pytest

from bpk_lite.pack import InvalidMagicNumber, LimitError
from bpk_lite.store import (
    ConfigError,
    NameCollision,
    PytorchReader,
    StoreError,
    UnsupportedValue,
    load_config,
    read_pickle_data,
)
from tests.store.zoo import FILES, FOLDER, rows

PICKLES = [
    row
    for row in map(json.loads, (FOLDER / "pytorch" / "expected.jsonl").read_text().splitlines())
    if "pickle" in row
]


@dataclass
class Settings:
    """What the recordings call `struct`."""

    lr: float
    steps: int | None
    name: str | None
    layers: list[int] | None


# `unit` and `char` have no counterpart
TYPES = {
    "bool": bool, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f32": float,
    "f64": float, "string": str, "option_f64": float | None, "option_i64": np.int64 | None,
    "list_i64": list[np.int64], "list_f64": list[float], "list_u8": list[np.uint8],
    "pair_i64": tuple[np.int64, np.int64], "map_i64": dict[str, np.int64],
    "map_option": dict[str, np.int64 | None], "struct": Settings,
}  # fmt: skip
FLOATS = ("f32", "f64", "option_f64")
# What is accepted here and refused by Burn: integers where a float is wanted, None for an optional
# value that is no entry of anything (S243).
MORE = (
    {(key, kind) for key in ("zero", "one", "neg", "big", "huge", "wide") for kind in FLOATS}
    | {(key, "list_f64") for key in ("ints", "tup", "three", "mixed")}
    | {("none", "option_f64"), ("none", "option_i64"), ("int_lr", "struct")}
)
# What is refused here and accepted by Burn: None read as 0 where a number is required (S243).
FEWER = {("holes", "map_i64")}
CASES = [(row, kind) for row in rows("config") for kind in TYPES]


def plain(value):
    """Return a value as the recordings write it; they have null for infinite numbers."""
    if isinstance(value, Settings):
        return vars(value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return None if isinstance(value, float) and math.isinf(value) else value


@pytest.mark.parametrize(
    ("row", "kind"), CASES, ids=lambda v: v if isinstance(v, str) else v["key"]
)
def test_settings_fit_the_types_that_they_fit_in_burn(row, kind):
    """All 30 recorded values as 21 types: what is accepted and as which value (S243)."""
    key = row["key"]
    accepted = kind in row["accepted"]
    assert ((key, kind) in MORE, (key, kind) in FEWER) <= (not accepted, accepted)
    if (accepted or (key, kind) in MORE) and (key, kind) not in FEWER:
        found = load_config(TYPES[kind], FILES / "config.pkl", key)
        if accepted:
            assert row["accepted"][kind] == plain(found)
        if isinstance(TYPES[kind], type) and issubclass(TYPES[kind], np.integer):
            assert type(found) is TYPES[kind]
    else:
        with pytest.raises(ConfigError, match=r"expected|is missing"):
            load_config(TYPES[kind], FILES / "config.pkl", key)


def marked(value):
    """Return a value as the recordings of pickles write it."""
    if isinstance(value, UnsupportedValue):
        return {"$unsupported": value.type}
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, list):
        return [marked(one) for one in value]
    return {key: marked(one) for key, one in value.items()} if isinstance(value, dict) else value


# One entry of each of these differs: bytes of protocol 2 are bytes (S241), integers of any size are
# integers, and a storage has the name of its class.
OTHERWISE = {
    "zip_nested.pt": ("raw", {"$bytes": "00ff"}),
    "zip_values_proto0.pt": ("big", 2**64),
    "zip_values_proto2.pt": ("big", 2**64),
    "zip_values_proto4.pt": ("big", 2**64),
    "storage_bare.pt": ("x", {"$unsupported": "torch.FloatStorage"}),
    "plain_proto0.pkl": ("n", 2**70),
}


@pytest.mark.parametrize(
    "row", PICKLES, ids=lambda row: f"{row['file']}:{row.get('top_level_key')}"
)
def test_values_are_those_that_burn_reads(row):
    """Every recorded pickle, but for one entry in six of them (S152)."""
    found = marked(read_pickle_data(FOLDER / "pytorch" / row["file"], row.get("top_level_key")))
    wanted = row["pickle"]["value"]
    if row["file"] in OTHERWISE:
        key, value = OTHERWISE[row["file"]]
        assert wanted[key] != value
        wanted = {**wanted, key: value}
    assert wanted == found


def pickled(value, protocol=2):
    """Return a pickle that starts as a plain one does (S116)."""
    return pickle.dumps(value, protocol)


class Registry(dict):
    """Stands for a dict of the user's, which is not imported when it is read."""


class Stack(list):
    """Stands for a list of the user's."""


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_containers_of_other_classes_are_what_they_are(protocol):
    """Subclasses of dict and list, sets and bytes, at every binary protocol (S133, S240, S241)."""
    given = {
        "registry": Registry(a=1), "stack": Stack([1, 2]), "set": {7}, "raw": b"\0\xff",
        "counts": defaultdict(int, b=2), "none yet": defaultdict(list), "pair": (1, 2.5),
    }  # fmt: skip
    assert {
        "registry": {"a": 1}, "stack": [1, 2], "set": [7], "raw": b"\0\xff",
        "counts": {"b": 2}, "none yet": {}, "pair": [1, 2.5],
    } == read_pickle_data(pickled(given, protocol))  # fmt: skip


def test_any_root_will_do():
    """A list, a number, and a key whose value is no dict (S239)."""
    assert [1, "a"] == read_pickle_data(pickled([1, "a"]))
    assert 5 == read_pickle_data(pickled({"epoch": 5}), "epoch")
    assert 5 == read_pickle_data(pickled({3: 5}), "3")


def test_what_is_not_there_is_named():
    """An unknown key lists those that are there; a file of another kind is told (S139)."""
    with pytest.raises(StoreError, match="'x' not found; there are a, b"):
        read_pickle_data(pickled({"b": 1, "a": 2}), "x")
    with pytest.raises(StoreError, match="'0' not found; there are none"):
        read_pickle_data(pickled([1]), "0")
    with pytest.raises(InvalidMagicNumber, match="JSON"):
        read_pickle_data(b'{"a": 1}')
    with pytest.raises(ConfigError, match=r"steps is missing; there are lr"):
        load_config(Steps, pickled({"lr": 1.0}))


def test_two_keys_of_one_text_are_an_error():
    """Nothing is lost without a word (S242)."""
    with pytest.raises(NameCollision, match="two keys of one dict are '1'"):
        read_pickle_data(pickled({1: "a", "1": "b"}))


def test_values_that_repeat_themselves_end_at_once():
    """A list that contains itself, and one that doubles twenty times (S137)."""
    doubled: Any = 0
    for _ in range(25):
        doubled = [doubled, doubled]
    endless: list[Any] = []
    endless.append(endless)
    for blob in (pickled(doubled), pickled(endless), b"\x80\x02" + b"]" * 600 + b"a" * 599 + b"."):
        with pytest.raises(LimitError, match="memo bomb"):
            read_pickle_data(blob)


@dataclass
class Steps:
    """A required entry, one with a default, one that is made, one that is no entry."""

    steps: int
    warm: bool = True
    tags: list[str] = field(default_factory=list)
    seen: int = field(default=0, init=False)


@dataclass
class Run:
    """Settings in settings."""

    first: Steps
    size: tuple[int, ...]
    shape: tuple
    extra: dict[str, Any]
    maybe: Optional[Steps]  # noqa: UP045  # the older way to write it works too
    choice: int | str


def test_settings_may_be_nested():
    """Dataclasses in dataclasses, tuples of any length, defaults, unions; the rest is ignored."""
    given = {
        "first": {"steps": 3, "seen": 9, "unknown": object()}, "size": [1, 2, 3], "shape": (1, "a"),
        "extra": {"k": None}, "maybe": None, "choice": "x",
    }  # fmt: skip
    found = load_config(Run, pickled(given))
    assert Run(Steps(3, True, []), (1, 2, 3), (1, "a"), {"k": None}, None, "x") == found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"first": {"steps": 0.5}}, r"first\.steps: expected int, found 0\.5"),
        ({"size": [1, "b"]}, r"size\[1\]: expected int, found 'b'"),
        ({"first": 3}, r"first: expected Steps, found 3"),
        ({"choice": None}, r"choice: expected int \| str, found None"),
        ({"choice": object()}, r"choice: expected int \| str, found __builtin__\.object"),
        ({"maybe": {"steps": 1, "warm": 1}}, r"maybe: expected .*Steps"),
    ],
)
def test_a_misfit_says_where_and_what(change, words):
    """The path inside the settings, the type that is wanted, the value that is there (S153)."""
    given = {
        "first": {"steps": 3},
        "size": [],
        "shape": (),
        "extra": {},
        "maybe": None,
        "choice": 1,
    }
    with pytest.raises(ConfigError, match=words):
        load_config(Run, pickled({**given, **change}))


def test_integers_beyond_floats_are_a_misfit():
    """An integer is taken for a float only if there is such a float (S243)."""
    assert 2.0**70 == load_config(float, pickled({"a": 2**70}), "a")
    with pytest.raises(ConfigError, match="expected float"):
        load_config(float, pickled({"a": 10**400}), "a")


def test_types_that_cannot_be_made_are_the_callers_mistake():
    """Sets, and dicts whose keys are no text."""
    for kind in (set[int], dict[int, int]):
        with pytest.raises(TypeError, match="load_config cannot make"):
            load_config(kind, pickled({"a": 1}))


def test_a_pickled_module_is_its_state_dict_here_too():
    """Read as plain values it has the names of its parameters and children (S149, S150)."""
    for file, key in (("zip_module_proto2.pt", None), ("zip_module_under_key.pt", "model")):
        found = read_pickle_data(FOLDER / "pytorch" / file, key)
        with PytorchReader.from_file(FOLDER / "pytorch" / file, top_level_key=key) as reader:
            names = [name.split(".") for name in reader]
        assert all(UnsupportedValue("torch.Tensor") == reduce(getitem, n, found) for n in names)
        assert {name[0] for name in names} == found.keys()
