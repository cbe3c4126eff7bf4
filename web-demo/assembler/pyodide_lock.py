"""The trimmed ``pyodide-lock.json``: what ships and nothing else.

Pyodide asks its content network for any package that its lock names and the site lacks. With a
lock that names only what ships, a missing package is an error instead of a request.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from assembler import AssemblyError
from assembler.store import sha256

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from assembler.wheels import Wheel

__all__ = ["trim"]


def trim(
    stock: bytes,
    wheels: Sequence[Wheel],
    shipped: Mapping[str, bytes],
    *,
    not_needed: AbstractSet[str] = frozenset(),
) -> bytes:
    """Return the lock of `wheels`, keeping Pyodide's own facts about itself from `stock`.

    Args:
        stock: The ``pyodide-lock.json`` of this release of Pyodide.
        wheels: The wheels as their authors made them; their metadata gives the dependencies.
        shipped: The bytes that the site has under each wheel's file name; their sha256 is written.
        not_needed: Packages that wheels name and that are left out all the same.

    Raises:
        AssemblyError: If a wheel needs one that is not among them.
    """
    document: dict[str, Any] = json.loads(stock)
    packages: dict[str, dict[str, Any]] = {}
    for wheel in wheels:
        facts = wheel.describe()
        packages[facts.name] = {
            "depends": [name for name in facts.depends if name not in not_needed],
            "file_name": wheel.file_name,
            "imports": list(facts.imports),
            "install_dir": "site",
            "name": facts.name,
            "package_type": "package",
            "sha256": sha256(shipped[wheel.file_name]),
            "unvendored_tests": False,
            "version": facts.version,
        }
    for name, package in packages.items():
        absent = [needed for needed in package["depends"] if needed not in packages]
        if absent:
            raise AssemblyError(f"{name} needs {', '.join(absent)}, which the page does not have")
    document["packages"] = dict(sorted(packages.items()))
    return json.dumps(document, indent=1, sort_keys=True).encode()
