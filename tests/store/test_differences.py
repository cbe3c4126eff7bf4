"""The table of deliberate differences names what is recorded otherwise, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bpk_lite.pack import BpkError
from tests.store.test_pytorch import DIFFERS, ROWS, described, opened, wanted

TABLE = Path(__file__).resolve().parent.parent.parent / "docs" / "differences-stores.md"


def read(row):
    """Return what is read of a checkpoint, or None where it is refused."""
    try:
        with opened(row) as reader:
            return described(reader)
    except BpkError:
        return None


def test_checkpoints_that_differ_from_burn_are_in_the_table():
    """Every file that Burn's reader reads otherwise, with no regard to who is right."""
    differ = {
        row["file"]
        for row in ROWS
        if wanted({key: value for key, value in row.items() if key != "right"}) != read(row)
    }
    listed = set(re.findall(r"`([a-z0-9_]+\.(?:pt|pkl|tar))`", TABLE.read_text("utf-8")))
    assert differ == listed
    assert {name for name in DIFFERS if name != "zip_crc_bad.pt"} <= listed


@pytest.mark.parametrize(
    "rule", ["S26", "S35", "S82", "S162", "S174", "S210", "S236", "S240", "S241", "S242", "S243"]
)
def test_rules_that_are_not_followed_are_in_the_table(rule):
    """Rules of the specification that tests here mark as decided otherwise."""
    rows = [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert any(re.search(rf"\b{rule}\b", line.split("|")[1]) for line in rows)
