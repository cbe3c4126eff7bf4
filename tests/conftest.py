"""What all tests share: real files of Burn, real Burn itself, and places to read packs from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,  # the first example of a test pays for imports, and CI has two busy cores
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")

FIXTURES = Path(__file__).parent / "fixtures"
ORACLE_DIR = os.environ.get("BPK_ORACLE_DIR")


def pytest_collection_modifyitems(config, items):
    """Leave out the tests that need real Burn where there is none; the summary says so."""
    if ORACLE_DIR:
        return
    left_out = [item for item in items if item.get_closest_marker("oracle")]
    config.stash[_LEFT_OUT] = len(left_out)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("oracle")]


_LEFT_OUT = pytest.StashKey[int]()


def pytest_terminal_summary(terminalreporter, config):
    left_out = config.stash.get(_LEFT_OUT, 0)
    if left_out:
        terminalreporter.write_line(
            f"NOT COMPARED WITH REAL BURN: {left_out} tests need the oracle programs; "
            "set BPK_ORACLE_DIR to their folder",
            yellow=True,
        )


@pytest.fixture(scope="session")
def fixtures():
    """The folder of files that real Burn made."""
    return FIXTURES


@pytest.fixture(scope="session")
def oracle():
    """Run a program of real Burn: ``oracle("oracle-pack", "dump", path)`` returns its JSON."""
    import subprocess

    def run(program, *args, check=True):
        done = subprocess.run(
            [Path(ORACLE_DIR) / program, *map(str, args)], capture_output=True, text=True
        )
        if check:
            assert done.returncode == 0, f"{program} {args}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    return run
