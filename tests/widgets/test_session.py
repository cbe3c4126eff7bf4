"""What the session answers, without a front end."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from checkpoints import Counted, network, pack, sparse_pack

import bpk_lite as bpk
from bpk_lite.desktop import open_source
from bpk_lite_widgets._session import Session
from bpk_lite_widgets._subject import Subject

pytestmark = pytest.mark.desktop


def apart(function, *arguments):
    """Call a function in a thread without an event loop: Chromium's driver keeps one in this."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function, *arguments).result()


class Asked:
    """A session whose messages are gathered; each must be what strict JSON can hold."""

    def __init__(self, source, other=None):
        self.messages = []
        self.session = Session(
            Subject.of(source), self.take, None if other is None else Subject.of(other)
        )

    def take(self, message, buffers):
        json.dumps(message, allow_nan=False)
        self.messages.append((message, [bytes(buffer) for buffer in buffers]))

    def ask(self, kind, **parameters):
        """Return the answer's data and buffers."""
        apart(self.session.receive, {"type": "request", "id": 1, "kind": kind, **parameters})
        message, buffers = self.messages[-1]
        return message.get("data", message.get("error")), buffers

    def index(self, name):
        _, buffers = self.ask("describe")
        return json.loads(buffers[0]).index(name)


@pytest.fixture(scope="module")
def asked():
    return Asked(pack(network(), metadata={"task": "none"}, scalars={"loss": float("nan")}))


def test_a_description_has_facts_tables_and_flat_columns(asked):
    """Lengths of buffers follow from the count (H2)."""
    data, buffers = asked.ask("describe")
    count = data["columns"]["count"]

    assert len(network()) == count == data["facts"]["tensors"]
    assert [count, 4 * count, 8 * count, 8 * count, 8 * count, count] == [
        len(b) for b in buffers[1:]
    ]
    assert [["task", "none"]] == [list(pair) for pair in data["metadata"]]
    assert [["loss", "Float", "nan"]] == [list(row) for row in data["scalars"]]
    assert sum(np.prod(np.shape(a)) for a in network().values()) == data["facts"]["elements"]


def test_statistics_are_those_of_the_tensor(asked):
    """NaN and infinities are counted, and the answer is strict JSON."""
    data, _ = asked.ask("statistics", tensor=asked.index("broken"))

    assert (4096, 1, 2) == (data["count"], data["nans"], data["infs_positive"])
    assert "inf" == data["max"]


def test_integers_that_javascript_would_round_come_as_text():
    """2^63 - 1 arrives with all its digits."""
    asked = Asked({"a": np.array([-(2**63), 2**63 - 1])})
    data, _ = asked.ask("statistics", tensor=asked.index("a"))

    assert (str(-(2**63)), str(2**63 - 1)) == (data["min"], data["max"])


@pytest.mark.parametrize(
    ("axes", "index", "expected"),
    [
        ([2, 3], {"0": 4, "1": 2}, lambda a: a[4, 2]),
        ([3, 2], {"0": 4, "1": 2}, lambda a: a[4, 2].T),
        ([0, 1], {"2": 7, "3": 0}, lambda a: a[:, :, 7, 0]),
        ([1, 3], {"0": 0, "2": 5}, lambda a: a[0, :, 5]),
    ],
)
def test_picture_and_values_agree_with_numpy_on_any_axes(asked, axes, index, expected):
    """The picture has all elements of a small plane; the table those of its rectangle."""
    array = network()["patch.weight"]
    plane = expected(array)
    tensor = asked.index("patch.weight")

    picture, (pixels,) = asked.ask("picture", tensor=tensor, axes=axes, index=index, size=512)
    values, _ = asked.ask(
        "values", tensor=tensor, axes=axes, index=index, row=1, column=2, rows=4, columns=3
    )

    np.testing.assert_array_equal(plane, np.frombuffer(pixels, "<f4").reshape(picture["shape"]))
    assert [[format(float(v), ".6g") for v in row] for row in plane[1:5, 2:5]] == values["rows"]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([True, False]), ["true", "false"]),
        (np.array([-(2**63), 5]), ["-9223372036854775808", "5"]),
        (np.array([0.1, np.nan, -np.inf], "f4"), ["0.1", "NaN", "−∞"]),
        (np.array([1 / 3]), ["0.3333333333"]),
        (np.array([1.5, -2], ml_dtypes.bfloat16), ["1.5", "-2"]),
        (np.float16(0.5), ["0.5"]),
    ],
)
def test_values_are_text_as_the_type_has_them(array, expected):
    """Integers in full, floats with the digits their type can tell."""
    asked = Asked({"a": array})
    index = asked.index("a")

    data, _ = asked.ask(
        "values", tensor=index, axes=None, index={}, row=0, column=0, rows=1, columns=8
    )

    assert [expected] == data["rows"]


def test_a_quantized_tensor_is_shown_by_the_values_it_stands_for(fixtures):
    """Picture and values of every quantized tensor of Burn's own files, or a reason."""
    shown = 0
    for path in sorted(fixtures.rglob("*.bpk")):
        try:
            asked = Asked(path)
        except bpk.BpkError:
            continue
        _, buffers = asked.ask("describe")
        for at, name in enumerate(json.loads(buffers[0])):
            tensor = asked.session.subject.tensor(name)
            if tensor.dtype.kind != "quantized" or tensor.ndim != 2:
                continue
            answer, _ = asked.ask(
                "values", tensor=at, axes=[0, 1], index={}, row=0, column=0, rows=1, columns=1
            )
            if "rows" in answer:
                assert [[format(float(tensor.numpy()[0, 0]), ".6g")]] == answer["rows"]
                shown += 1
            else:
                assert "cannot be told" in answer["message"]
    assert shown > 0


def test_opening_and_choosing_read_no_more_than_is_shown(tmp_path):
    """Of 2 GiB: the metadata, then at most a row of the file for each row of the picture."""
    path = tmp_path / "sparse.bpk"
    sparse_pack(path)
    source = Counted(open_source(path, limits=bpk.Limits(), backend="read"))
    asked = Asked(source)

    asked.ask("describe")
    opened = source.read
    asked.ask("picture", tensor=3, axes=[0, 1], index={}, size=512)
    pictured = source.read - opened
    asked.ask("values", tensor=3, axes=[0, 1], index={}, row=4000, column=4000, rows=8, columns=6)

    assert path.stat().st_size > 2 << 30
    assert opened < 64 << 10
    assert 512 * 4096 * 4 >= pictured > 0
    assert 8 * 6 * 4 == source.read - opened - pictured


def test_a_picture_that_would_read_too_much_is_refused_with_the_reason(tmp_path):
    """A vector of 1 GiB is one row: its values and statistics can be had."""
    path = tmp_path / "long.bpk"
    plan = bpk.Writer([bpk.Tensor.deferred("v", "F32", (1 << 28,), bytes)]).plan()
    with path.open("wb") as file:
        file.write(plan.header)
        file.truncate(plan.size)
    asked = Asked(path)
    asked.ask("describe")

    refused, _ = asked.ask("picture", tensor=0, axes=None, index={}, size=512)
    values, _ = asked.ask(
        "values", tensor=0, axes=None, index={}, row=0, column=1 << 27, rows=1, columns=2
    )

    assert "LimitError" == refused["kind"]
    assert "1024 MiB" in refused["message"]
    assert [["0", "0"]] == values["rows"]


def test_a_made_tensor_is_made_once_for_picture_and_values(tmp_path):
    """An .npz is inflated for a tensor when it is looked at, not for each look."""
    calls = []

    def provide():
        calls.append(1)
        return np.ones((4, 4), "f4")

    asked = Asked({"a": bpk.Tensor.deferred("a", "F32", (4, 4), provide)})
    asked.ask("describe")
    for _ in range(3):
        asked.ask("picture", tensor=0, axes=[0, 1], index={}, size=512)
        asked.ask("values", tensor=0, axes=[0, 1], index={}, row=0, column=0, rows=2, columns=2)

    assert [1] == calls


def test_work_is_cancelled_between_slices():
    """On an event loop a cancellation is taken while statistics are made, and no answer follows."""
    array = np.zeros(32 << 20, "u1")
    asked = Asked({"a": array})
    asked.ask("describe")
    asked.messages.clear()

    async def scenario():
        asked.session.receive({"type": "request", "id": 7, "kind": "statistics", "tensor": 0})
        for _ in range(5):
            await asyncio.sleep(0)
        asked.session.receive({"type": "cancel", "id": 7})
        await asyncio.sleep(0.05)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert set() == apart(asyncio.run, scenario())
    assert [] == [m for m, _ in asked.messages if m["type"] in ("answer", "error")]


def test_what_goes_wrong_is_an_answer(asked):
    """The front end is told the kind of error and what it says; the session answers on."""
    error, _ = asked.ask(
        "values",
        tensor=asked.index("steps"),
        axes=[0, 9],
        index={},
        row=0,
        column=0,
        rows=1,
        columns=1,
    )
    assert "IndexError" == error["kind"]

    error, _ = asked.ask("unheard of", tensor=0)
    assert "unheard of" in error["message"]
    assert "facts" in asked.ask("describe")[0]


def test_a_comparison_says_what_differs_with_and_without_values():
    """First names, types and shapes; then values, in the same form."""
    old = {
        "a": np.ones(4, "f4"),
        "b": np.ones(3, "f4"),
        "c": np.ones(2, "f4"),
        "d": np.ones(2, "f4"),
    }
    new = {
        "a": np.ones(4, "f4"),
        "b": np.array([1, 1, 1.5], "f4"),
        "c": np.ones((2, 1), "f4"),
        "e": np.ones(1, "f4"),
    }
    asked = Asked(old, new)

    before, _ = asked.ask("compare", data=False)
    after, _ = asked.ask("compare", data=True)

    states = {"a": "unread", "b": "unread", "c": "shape", "d": "removed", "e": "added"}
    assert states == {row[0]: row[1] for row in before["rows"]}
    assert states | {"a": "same", "b": "changed"} == {row[0]: row[1] for row in after["rows"]}
    assert 0.5 == next(row for row in after["rows"] if row[0] == "b")[8]
    assert 28 == after["nbytes"]


def test_the_description_tells_what_is_odd_about_a_pack(fixtures):
    """Warnings of `verify` come with the tensor they concern; the front end can go there."""
    found = []
    for path in sorted(fixtures.rglob("*.bpk")):
        try:
            data, _ = Asked(path).ask("describe")
        except bpk.BpkError:
            continue
        found += [note for note in data["notes"] if note["level"] == "warning"]

    assert found
    assert all(note["message"] and note["code"] for note in found)
    assert any(isinstance(note["tensor"], int) for note in found)
