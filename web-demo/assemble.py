"""Put the static site together: ``python web-demo/assemble.py [--out DIR]``.

The result is a folder for any static host. What it does, and why, is in ``assembler/``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from assembler import AssemblyError
from assembler.site import DEMO, assemble

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="assemble.py", description="Put the web demo together.")
    parser.add_argument(
        "--out", type=Path, default=DEMO / "_site", help="the folder to make (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    start = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - start:5.1f} s] {text}", flush=True)

    try:
        assemble(options.out.resolve(), say)
    except AssemblyError as error:
        print(f"web demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
