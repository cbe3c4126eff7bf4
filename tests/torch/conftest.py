"""These tests need torch; Pyodide leaves them out, and so does a run without torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import desktop_module

torch = desktop_module("torch")


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.desktop)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Small tensors on busy cores: threads would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
