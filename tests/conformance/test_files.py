"""The same answers from files, mapped and read."""

from __future__ import annotations

import pytest

from bpk_lite.pack import Reader
from tests.conformance.test_container import PACKS, ROWS, check_tolerance
from tests.support import rewritten

pytestmark = pytest.mark.desktop


@pytest.mark.parametrize("backend", ["mmap", "read"])
def test_odd_metadata_is_judged_alike_from_files(tmp_path, backend):
    """Bytes, mapping and plain reads judge all 288 odd packs alike."""
    path = tmp_path / "odd.bpk"

    def opener(blob):
        path.unlink(missing_ok=True)
        path.write_bytes(blob)
        return Reader.from_file(path, backend=backend)

    for row in ROWS:
        check_tolerance(row, opener)


@pytest.mark.parametrize("backend", ["mmap", "read"])
def test_burns_packs_are_rewritten_from_files(backend):
    """Every pack of Burn comes out the same from a mapping and from reads."""
    for path in PACKS:
        with Reader.from_file(path, backend=backend) as pack:
            assert path.read_bytes() == rewritten(pack)
