"""A group chooses params by id, path or pattern (R21 to R23)."""

import pytest

from bpk_lite import nn
from tests.nn.zoo import Fields

G = nn.ParamGroup


@pytest.mark.parametrize(
    ("group", "path", "expected"),
    [
        (G.all(), "a", True),
        (G.path("a.b"), "a.b", True),
        (G.path("a.b"), "a.b.c", False),
        (G.paths(["x", "y"]), "y", True),
        (G.predicate("eight"), "fc.weight", True),
        (G.predicate("bias"), "fc.weight", False),
        (G.predicates(["fc", "bias"]), "fc.bias", True),
        (G.predicates(["fc", "bias"]), "fc.weight", False),
        (G.predicates([]), "anything", True),
        (G.any_predicates(["fc", "conv"]), "conv.bias", True),
        (G.any_predicates(["fc", "conv"]), "norm.bias", False),
        (G.any_predicates([]), "anything", True),
        (G.regex(r"\d"), "layers.3.bias", True),
        (G.regex(r"^\d"), "layers.3.bias", False),
        (G.regexes([r"^l", r"s$"]), "layers.3.bias", True),
        (G.regexes([r"^l", r"t$"]), "layers.3.bias", False),
        (G.any_regexes([r"^x", r"s$"]), "layers.3.bias", True),
        (G.any_regexes([]), "anything", True),
    ],
)
def test_paths_match(group, path, expected):
    """Paths match whole, by parts or by patterns found anywhere; no parts match everything (R22)."""
    assert expected == group.matches(1, path)


def test_ids_match_whatever_the_path():
    """Ids match with and without a path; paths do not match when there is none (R22, R23)."""
    assert G.ids([5]).matches(5, None)
    assert not G.ids([5]).matches(6, "a")
    assert G.all().matches(1, None)
    for group in (G.path("a"), G.predicates([]), G.any_regexes([]), G.regex("a")):
        assert not group.matches(1, None)


def test_module_group_takes_running_states_too():
    """The group of a module has the ids of its params and running states (R22)."""
    norm, other = nn.BatchNorm(2), nn.BatchNorm(2)
    net = Fields(norm=norm, other=other)
    record = net.into_record_group(G.module(norm))
    assert ["norm.gamma", "norm.beta", "norm.running_mean", "norm.running_var"] == list(
        record.tensors
    )


def test_exclusions_accumulate_and_ignore_their_own():
    """Excluding a group uses its matcher only, and exclusions add up (R23)."""
    inner = G.predicate("a").exclude(G.predicate("ab"))
    group = G.all().exclude(inner).exclude(G.path("z"))
    assert [False, False, True, False] == [group.matches(1, p) for p in ("a", "ab", "c", "z")]


def test_fusing_drops_exclusions():
    """A fusion takes what either matches, and forgets both exclusions (R23)."""
    left = G.path("a").exclude(G.path("a"))
    assert not left.matches(1, "a")
    fused = left.fuse(G.path("b").exclude(G.path("b")))
    assert [True, True, False] == [fused.matches(1, p) for p in ("a", "b", "c")]


@pytest.mark.parametrize("build", [G.regex, lambda p: G.regexes([p]), lambda p: G.any_regexes([p])])
def test_invalid_regex_is_an_error_at_once(build):
    """An invalid pattern is refused when the group is made (R23)."""
    with pytest.raises(ValueError, match=r"'\(' is not a regular expression"):
        build("(")


def test_group_describes_itself():
    """`repr` says what a group takes."""
    assert "<ParamGroup contains all of ['weight'] except paths ['a']>" == repr(
        G.predicate("weight").exclude(G.path("a"))
    )
