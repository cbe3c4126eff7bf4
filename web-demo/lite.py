"""Put the notebooks into a JupyterLite site: ``python web-demo/lite.py [--out DIR]``.

The result is a folder for any static host, and needs no network. See ``assembler/lite.py``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from assembler import AssemblyError
from assembler.lite import build
from assembler.site import DEMO

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="lite.py", description="Build the notebooks' site.")
    parser.add_argument(
        "--out", type=Path, default=DEMO / "_lite", help="the folder to make (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    start = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - start:5.1f} s] {text}", flush=True)

    try:
        build(options.out.resolve(), say)
    except AssemblyError as error:
        print(f"JupyterLite: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
