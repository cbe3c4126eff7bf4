"""What notebooks show: complete, honest about what is left out, and inert whatever names hold."""

from __future__ import annotations

import html as stdlib_html
import json
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpk_lite as bpk
from bpk_lite.convert import Contents
from bpk_lite.inspect import diff, html, summarize, tensor_stats
from bpk_lite.pack import BytesSource, Reader, Scalar, Tensor, TensorClosedError, Writer
from bpk_lite.records import LrSchedulerRecord, ModuleRecord, OptimizerRecord
from tests.support import descriptor, pack_of

# every element and attribute that our own code makes
ELEMENTS = {
    "bdi", "caption", "details", "div", "li", "span", "strong", "summary", "table", "tbody", "td",
    "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"aria-hidden", "aria-label", "open", "role", "scope", "style", "title"}
HOSTILE = [
    "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", '" onmouseover="alert(1)',
    "'><svg/onload=alert(1)>", "</details></div></table>", "<!--", "]]>", "&lt;b&gt;", "&#60;img&#62;",
    "\u202egnp.exe", "a\u200bb\u2060c\ufeff", "line\nbreak\r\ttab", "\x00\x07\x1b[31m", "\u2028\u2029",
    "<style>*{display:none}</style>", "javascript:alert(1)", "<" * 300, "",
]  # fmt: skip


class Parsed(HTMLParser):
    """What a browser would make of it: elements, attributes, text; every element must be closed."""

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.text, self.styles = set(), set(), "", []
        self._open = []
        self.feed(markup)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {key for key, _ in attrs}
        self.styles += [value for key, value in attrs if key == "style"]
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def inert(markup):
    """Check that nothing but our own elements is there; return the text."""
    found = Parsed(markup)
    assert found.elements <= ELEMENTS
    assert found.attributes <= ATTRIBUTES
    assert not any("url" in style or "expression" in style for style in found.styles)
    assert found.text.isprintable()
    return found.text


def pack(tensors, metadata=None, scalars=None):
    return Reader.from_bytes(
        Writer(tensors, metadata=metadata, scalars=scalars).plan().into_bytes()
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_values_are_text_wherever_they_stand(name):
    """Tensor names and their parts, metadata, scalars, sources: none becomes an element (bug B10)."""
    tensors = {name: np.ones(2, "f4"), f"a.{name}.b": np.ones(1), f"a.{name}.c": np.ones(1, "i4")}
    blob = Writer(tensors, metadata={name: name, "k": name}, scalars={name: 1}).plan().into_bytes()
    shown = Reader.from_bytes(blob, name=name)
    other = pack({name: np.zeros(2, "f4")}, {name: "other"}, {name: 2})
    subjects = [
        shown, shown[name], summarize(shown), ModuleRecord.from_pack(shown), OptimizerRecord.from_pack(shown),
        LrSchedulerRecord(scalars={name: Scalar("Int", 1)}), diff(shown, other),
        Contents("npz", [shown[name]], notes=[name]),
    ]  # fmt: skip
    for subject in subjects:
        text = inert(html(subject))
        if len(name) > 3 and name.isprintable() and len(name) < 100:
            assert name in text


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_at_all_becomes_an_element(name, value):
    """Any name and value that UTF-8 can hold."""
    shown = pack([Tensor.from_array(name, np.ones(1))], {value: name}, {name: 1.5})
    inert(html(shown))
    inert(html(shown[name]))


def test_findings_are_text_too():
    """The warnings of a broken pack quote names."""
    name = "<img src=x onerror=alert(1)>"
    blob = pack_of({name: descriptor("U8", (1,), (5, 6))}, bytes(6))
    text = inert(Reader.from_bytes(blob)._repr_html_())
    assert "2 warnings" in text
    assert f"misaligned: '{name}' starts at 5" in text


def test_a_pack_shows_what_it_is():
    """Kind, sizes, dtypes with parameters, metadata, scalars, and the tree with 2 before 10."""
    tensors = [
        Tensor.from_array(f"net.{i}.weight", np.ones((2, 3), "f4"), param_id=i) for i in (10, 2)
    ]
    tensors.append(Tensor.from_array("net.bias", np.ones(4, "f2"), param_id=3))
    text = inert(pack(tensors, {"task": "mnist"}, {})._repr_html_())
    for words in ("module record", "burnpack version 1", "3 tensors, 16 elements, 56 B", "task", "mnist",
                  "2.weight", "F32 [2, 3]", "metadata (1)", "tensors (3)", "85.7%",
                  "net 3 tensors, 16 elements, 56 B"):  # fmt: skip
        assert words in text
    assert "more" not in text
    assert text.index("2.weight") < text.index("10.weight")


@pytest.mark.parametrize("record", [ModuleRecord, OptimizerRecord, LrSchedulerRecord])
def test_records_show_what_they_hold(record):
    """Of each type, also an empty one."""
    made = record(
        [Tensor.from_array("w", np.ones(2))],
        scalars={"step": Scalar("UInt", 7)},
        metadata={"k": "v"},
    )
    text = inert(made._repr_html_())
    assert record.__name__ in text
    assert "step" in text
    assert "0 tensors" in inert(record()._repr_html_())


def test_a_tensor_shows_its_description_and_reads_nothing():
    """A lazy tensor of gigabytes costs nothing to look at; a provider is not called."""

    def fail():
        raise AssertionError

    lazy = Tensor.deferred("w", "F32", (1 << 15, 1 << 15), fail, param_id=5)
    text = inert(lazy._repr_html_())
    for words in ("w", "F32", "[32768, 32768]", "4,294,967,296 (4 GiB)", "made when it is needed",
                  "5 (0k00000000000)"):  # fmt: skip
        assert words in text

    class Guarded(BytesSource):
        closed = False

        def read_at(self, offset, length):
            assert not self.closed
            return super().read_at(offset, length)

    source = Guarded(Writer({"w": np.ones(3)}).plan().into_bytes(), "model.bpk")
    shown = Reader.from_source(source)
    source.closed = True
    assert "in model.bpk" in inert(shown["w"]._repr_html_())
    inert(shown._repr_html_())
    assert "in memory" in inert(Tensor.from_array("w", np.ones(1))._repr_html_())


def test_a_closed_pack_says_that_it_is():
    """The notebook shows that, not an error."""
    shown = pack({"w": np.ones(1)})
    shown.close()
    with pytest.raises(TensorClosedError):
        summarize(shown)
    assert "closed" in inert(shown._repr_html_())


def test_a_large_pack_is_cut_and_says_what_is_missing():
    """100 000 tensors: a page of less than 1 MB, no element lost from the counts."""
    names = [f"layers.{i}.{j}.w" for i in range(250) for j in range(400)]
    text = inert(
        markup := pack([Tensor.from_array(name, np.zeros(1, "u1")) for name in names])._repr_html_()
    )
    assert len(markup) < 1 << 20
    assert "100,000 tensors" in text
    assert "… and 150 more (60,000 tensors)" in text
    wide = pack([Tensor.from_array(str(i), np.zeros(1, "u1")) for i in range(1500)])._repr_html_()
    assert "… and 1,400 more (1,400 tensors)" in inert(wide)
    many = pack({}, {f"k{i}": "v" for i in range(150)})
    assert "… and 50 more" in inert(many._repr_html_())


def test_a_deep_path_is_one_line_and_a_deep_tree_ends():
    """10 000 components without a branch; and 3000 with one each, which would nest that deep."""
    deep = "a." * 10_000 + "z"
    text = inert(
        pack(
            [Tensor.from_array(deep, np.ones(1)), Tensor.from_array("b", np.ones(1))]
        )._repr_html_()
    )
    assert "(20,001 characters)" in text
    comb = [Tensor.from_array("a." * i + "leaf", np.zeros(0)) for i in range(3000)]
    assert "not shown" in inert(pack(comb)._repr_html_())


def test_statistics_show_a_histogram_in_words_too():
    """Extremes, counts, and what lies outside; also where there are none."""
    values = np.append(np.random.default_rng(0).standard_normal(5000), [1e9, np.nan])
    text = inert(tensor_stats(Tensor.from_array("w", values))._repr_html_())
    for words in ("5,002 F64", "1e+09", "1 NaN", "1 above"):
        assert words in text
    assert "no elements" in inert(html(tensor_stats(Tensor.from_array("w", np.zeros(0)))))


def test_a_difference_shows_each_change():
    """Status, name and how much; equal packs are called the same."""
    one, other = pack({"w": np.ones(3)}, {"k": "1"}), pack({"w": np.zeros(3)}, {"k": "2"})
    text = inert(diff(one, other)._repr_html_())
    for words in ("different: 1 changed", "changedw", "3 of 3 elements differ", "k12"):
        assert words in text
    assert text.startswith("different")
    assert "→" not in text.partition("metadata")[0]  # both are of one kind
    assert "module record → empty" in inert(
        html(diff(ModuleRecord([Tensor.from_array("w", np.ones(1), param_id=1)]), {}))
    )
    assert inert(html(diff(one, one))).startswith("same: 1 same")


def test_the_markup_has_no_colour_of_its_own():
    """It takes the colour of the text around it, so it is right on light and on dark."""
    markup = pack({"a": np.ones(2), "b": np.ones(2, "f4")}, {"k": "v"})._repr_html_()
    for style in Parsed(markup).styles:
        for declaration in style.split(";"):
            key, _, value = declaration.partition(":")
            assert key in {"background", "opacity"} or "color" not in key
            assert key != "background" or value == "currentColor"


def test_what_is_nothing_to_show_is_refused():
    """With its type."""
    with pytest.raises(TypeError, match="not int"):
        html(3)


def test_the_html_survives_a_notebook_file():
    """As JSON, and unescaped again, it is what it was."""
    markup = pack({"ä<b>": np.ones(1)})._repr_html_()
    assert markup == json.loads(json.dumps(markup))
    assert "ä&lt;b&gt;" in markup
    assert "ä<b>" in stdlib_html.unescape(markup)
    assert bpk.open(bpk.save({"w": np.ones(1)}))._repr_html_().startswith("<div")
