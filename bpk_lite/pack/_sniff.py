"""Say what a file is that is not a burnpack, and what to do with it (S228 to S233)."""

from __future__ import annotations

__all__ = ["looks_like"]

_OLD_RECORD = (
    "Burn reads .bpk since 0.22 and renaming converts nothing: load the file with the Burn release "
    "that wrote it, export to SafeTensors there, then convert that"
)
_TORCH = "`bpk convert` and bpk_lite.store.PytorchStore read it"


def looks_like(head: bytes, size: int) -> str:
    """Describe what a file of `size` bytes is that begins with `head` (512 bytes will do).

    Returns:
        A phrase that fits behind "it is" or "this is", with advice behind a semicolon.
    """
    if size == 0:
        return "an empty file; was the download or the save interrupted?"
    for prefix, answer in _SIGNATURES:
        if head.startswith(prefix):
            return answer
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head[257:262] == b"ustar":
        return f"a tar archive, perhaps an old PyTorch checkpoint; {_TORCH}"
    if len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= 100 << 20:
        return "a SafeTensors file; `bpk convert` and bpk_lite.store.SafetensorsStore read it"
    if head[:1] == b"\x80" and head[1:2] and head[1] <= 5:
        return f"a Python pickle, perhaps an old PyTorch checkpoint; {_TORCH}"
    if text[:1] == b"<":
        return "HTML or XML; a server probably answered with a page instead of the file"
    if text[:1] in {b"{", b"["}:
        return f"JSON, perhaps a record of Burn before 0.22; {_OLD_RECORD}"
    if 0x80 <= head[0] <= 0x8F or head[0] in {0xDE, 0xDF}:
        return f"MessagePack, probably a .mpk record of Burn before 0.22; {_OLD_RECORD}"
    if not any(head):
        return "all zeros; was the save interrupted?"
    return "of no kind known here; if it is a .bin record of Burn before 0.22: " + _OLD_RECORD


_SIGNATURES = (
    (b"NRUB", "a burnpack"),
    (b"BURN", "marked BURN, the magic number in big-endian order; a burnpack begins with NRUB"),
    (b"\x1f\x8b", f"gzip data, perhaps an .mpk.gz or .bin.gz record; {_OLD_RECORD}"),
    (b"version https://git-lfs", "a Git LFS pointer; fetch the real file with `git lfs pull`"),
    (b"PK\x03\x04", f"a zip archive, perhaps a PyTorch checkpoint; if so, {_TORCH}"),
    (b"\x93NUMPY", "a numpy .npy array; load it with numpy.load, save with bpk_lite.save_file"),
    (b"GGUF", "a GGUF model; `bpk convert` reads its tensors that are plain numbers"),
    (b"\x89HDF\r\n", "an HDF5 file, perhaps Keras weights; load it with h5py and save the arrays"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed; decompress it first"),
    (b"\xfd7zXZ", "xz-compressed; decompress it first"),
    (b"BZh", "bzip2-compressed; decompress it first"),
)  # fmt: skip
