"""Filters, remapping, index mapping and suggestions against Burn's recorded answers."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from bpk_lite.pack import Tensor
from bpk_lite.store import (
    ApplyIssue,
    ApplyResult,
    KeyRemapper,
    NameCollision,
    PathFilter,
    map_indices_contiguous,
    map_indices_contiguous_except,
)
from bpk_lite.store._remap import contiguous_names

FOLDER = Path(__file__).parent.parent / "fixtures" / "burn" / "store"


def rows(name):
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().split("\n") if line]


def tensors(*names):
    return [Tensor.from_array(name, np.zeros(1)) for name in names]


# Patterns whose meaning in Rust's dialect Python does not have, or has otherwise, and patterns that
# only Python has (S244.2 to S244.5). They are refused or allowed as Python does; docs list the kinds.
RUST_ONLY = re.compile(
    r"\[:|&&|[^\\]--|\[\[|\\[pP]|\\[xu]\{|\\b\{|\\<|\\>|\(\?[URa]|\(\?-u|\?-i|e\(\?i|<a\.b>|<a\[0\]>|[ae]\*\*"
    r"|\(\?i\)|^\\[wWsb]$"
)
PYTHON_ONLY = re.compile(
    r"\(\?[=!<>#]|\\1|\(\?P=|\\Z|\\0|\\é|a\{|\{1000\}\)\{1000\}|\(\?a\)|\(\?P<a>e\)\(\?P=a\)"
)


@pytest.mark.parametrize("row", rows("remap"), ids=lambda row: str(row["patterns"])[:60])
def test_names_are_remapped_as_burn_does(row):
    """Every recorded remapping, but for the documented differences of the dialects (S157, S244)."""
    patterns = [tuple(pair) for pair in row["patterns"]]
    known = any(RUST_ONLY.search(one) or PYTHON_ONLY.search(one) for one, _ in patterns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Python about nested sets
        try:
            remapper = KeyRemapper(patterns)
            found = [remapper.rename(key) for key in row["keys"]]
            if row.get("reindex"):
                found = contiguous_names(found, row.get("keep", []))
        except ValueError:
            found = None
    if row.get("python_re") in (None, "same") or not known:
        assert row.get("result") == found
    else:
        assert row["python_re"] in ("differs", "error")


def test_the_documented_differences_are_few():
    """The two lists above excuse only rows that Python itself reads otherwise."""
    excused = [
        row
        for row in rows("remap")
        if row.get("python_re") in ("differs", "error")
        and any(RUST_ONLY.search(p) or PYTHON_ONLY.search(p) for p, _ in row["patterns"])
    ]
    assert len(excused) < 60


@pytest.mark.parametrize(
    ("names", "mapped"),
    [
        (["f.0.w", "f.2.w", "f.10.w"], ["f.0.w", "f.1.w", "f.2.w"]),
        (["a.1", "b.5", "a.3"], ["a.0", "b.0", "a.1"]),
        (["0.w", "2.w"], ["0.w", "1.w"]),
        (["layer_2.w", "out.w"], ["layer_2.w", "out.w"]),
        (["f.0.c.0", "f.0.c.2", "f.2.c.0", "f.2.c.2"], ["f.0.c.0", "f.0.c.1", "f.1.c.0", "f.1.c.1"]),
        ([], []),
    ],
)  # fmt: skip
def test_indices_become_contiguous(names, mapped):
    """Each list by itself, in numeric order, nested ones too (S164 to S169; bugs G1, G2)."""
    found, pairs = map_indices_contiguous(tensors(*names))
    assert mapped == [tensor.name for tensor in found]
    assert list(zip(mapped, names, strict=True)) == pairs


def test_lists_can_be_kept_as_they_are():
    """By pattern or function of the prefix; a wrong pattern is a ValueError (S171, S172)."""
    given = tensors("flows.0", "flows.2", "fc.0", "fc.2")
    for keep in (r"^flows$", [r"^flows$"], lambda prefix: prefix == "flows"):
        found, _ = map_indices_contiguous_except(given, keep)
        assert ["flows.0", "flows.2", "fc.0", "fc.1"] == [tensor.name for tensor in found]
    with pytest.raises(ValueError, match="is not a regular expression"):
        map_indices_contiguous_except(given, "(")


def test_collisions_name_both_sources():
    """Two names that become one are an error, not a silent loss (S162, S170; bug G4)."""
    with pytest.raises(NameCollision, match=r"'a\.w' and 'b\.w' would both be named 'x\.w'"):
        KeyRemapper({"^[ab]": "x"}).remap(tensors("a.w", "b.w"))
    with pytest.raises(NameCollision, match=r"'fc\.1' and 'fc\.01'"):
        map_indices_contiguous(tensors("fc.1", "fc.01"))


def test_replacements_have_rusts_meaning():
    """`$1a` is the group named 1a, `${1}a` is group 1 and an a, `$$` a dollar (S158; bug G3)."""
    for replacement, wanted in (
        ("$1a", ""), ("${1}a", "xa"), ("$$1", "$1"), ("$name", "x"), ("${none}", ""), ("\\1", "\\1"),
        ("$", "$"), ("$-", "$-"),
    ):  # fmt: skip
        assert wanted == KeyRemapper([("^(?P<name>x)$", replacement)]).rename("x")
    assert "p.w" == KeyRemapper([(".*", "p.$0")]).rename("w")
    assert "ab\n" == KeyRemapper([("b$", "c")]).rename("ab\n")
    renamed, pairs = KeyRemapper({"^module\\.": ""}).remap(tensors("module.w", "b"))
    assert (["w", "b"], [("w", "module.w"), ("b", "b")]) == ([t.name for t in renamed], pairs)


PREDICATES = {
    "weights": lambda path, _: path.endswith("weight"),
    "norm": lambda path, _: "norm" in path,
    "short": lambda path, _: len(path.encode()) < 10,
    "in_linear": lambda _, containers: containers.split(".")[-1] == "Struct:Linear",
    "any_container": lambda _, containers: containers != "",
    "enum_container": lambda _, containers: "Enum:" in containers,
    "never": lambda *_: False,
}


def built(spec):
    made = PathFilter(
        spec.get("regex", ()), spec.get("paths", ()), [PREDICATES[p] for p in spec.get("predicates", ())]
    )  # fmt: skip
    if spec.get("match_all"):
        made = made.match_all()
    if "or" in spec:
        made = made | built(spec["or"])
    for what in [spec["clear"]] if isinstance(spec.get("clear"), str) else spec.get("clear", ()):
        made = getattr(made, {"all": "clear"}.get(what, f"clear_{what}"))()
    return made


@pytest.mark.parametrize("row", rows("filter"), ids=lambda row: str(row["spec"])[:60])
def test_filters_match_as_burns_do(row):
    """Every recorded filter, its counts and its text; where Burn panics, a ValueError (S175-S182)."""
    patterns = row["spec"].get("regex", ())
    if patterns and patterns[0] in ("(?=a)", r"\Z"):
        built(row["spec"])  # what only Python has is allowed (S161)
        return
    if "matches" not in row or "a**" in patterns:
        with pytest.raises(ValueError, match="is not a regular expression"):
            built(row["spec"])
        return
    made = built(row["spec"])
    keys = [(key, "") if isinstance(key, str) else tuple(key) for key in row["keys"]]
    assert row["matches"] == [made.matches(*key) for key in keys]
    assert (row["is_empty"], row["criteria_count"]) == (made.is_empty, made.criteria_count)
    if "display" in row:
        assert row["display"] == str(made)


@pytest.mark.parametrize("row", rows("summary"), ids=lambda row: str(row["result"])[:60])
def test_summaries_show_the_same_facts(row):
    """Which names are listed, which suggestions are made, how many enum paths (S186 to S189)."""
    given = row["result"]
    pairs = [(m, "") if isinstance(m, str) else tuple(m) for m in given.get("missing", ())]
    result = ApplyResult(
        tuple(given.get("applied", ())),
        tuple(given.get("skipped", ())),
        tuple(pairs),
        tuple(given.get("unused", ())),
        tuple(ApplyIssue("load", path, "", "x") for path in given.get("errors", ())),
    )
    text, shown = str(result), row["printed"]["shown"]
    lines = [line.strip() for line in text.splitlines()]
    for kind, entries in (("missing", [m for m, _ in pairs]), ("unused", given.get("unused", []))):
        assert shown[kind] == entries[:10]
        assert all(name in lines for name in shown[kind])
        if len(entries) > 10:
            assert f"… and {len(entries) - 10} more" in lines
    found = {m: result.suggestion(m) for m, _ in pairs[:10] if result.suggestion(m) is not None}
    assert row["printed"]["suggestions"] == found
    assert all(f"Did you mean '{name}'?" in lines for name in found.values())
    enums = sum("Enum:" in containers for _, containers in pairs)
    assert (enums > 0) == ("enum variant" in text)


def test_a_result_counts_and_tells():
    """Success means no errors; every list is in the text (S184)."""
    issue = ApplyIssue("shape", "a", "[2]", "[3]")
    result = ApplyResult(("x",), ("y",), (("z", ""),), ("u",), (issue,), (("x", "F32", "F16"),))
    assert not result.is_success
    assert ApplyResult(missing=(("z", ""),)).is_success
    for words in ("applied 1, skipped (filtered) 1", "shape mismatch for 'a': expected [2], found [3]",
                  "x: F32 -> F16"):  # fmt: skip
        assert words in str(result)
