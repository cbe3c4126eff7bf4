"""Make ``site/samples.png``: two digits of each kind from the MNIST test set, drawn on a click.

``python web-demo/make_samples.py``; the picture is committed, so this runs only to change it. Ten
columns, one per digit; the rows are two of its images, with the ink white as in MNIST.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Final

import numpy as np
from mnist_data import load

__all__ = ["main"]

_TARGET: Final = Path(__file__).resolve().parent / "site" / "samples.png"
# The third and the eighth of each kind: plainly readable, in different hands.
_CHOSEN: Final = (2, 7)


def main() -> None:
    """Write the picture."""
    images, labels = load("test")
    rows = [
        np.hstack([images[np.flatnonzero(labels == digit)[place]] for digit in range(10)])
        for place in _CHOSEN
    ]
    _TARGET.write_bytes(_png(np.vstack(rows)))
    print(f"wrote {_TARGET}, {_TARGET.stat().st_size} bytes")


def _png(pixels: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> bytes:
    """Encode 8-bit grey pixels, each line unfiltered."""
    height, width = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


if __name__ == "__main__":
    main()
