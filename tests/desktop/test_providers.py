"""Tensors on devices, in other packs and in functions come over when the writer gets there (C89)."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

import bpk_lite as bpk
from bpk_lite.desktop.providers import deferred
from bpk_lite.pack import DType, PlanError, Tensor, Writer

MIB = 1 << 20
WINDOW = 8 * MIB


class Device:
    """A device of its own memory, which counts the bytes it has copied to the host that live."""

    def __init__(self):
        self.alive = self.peak = self.copies = 0

    def copied(self, array):
        made = np.array(array)
        self.copies += 1
        self.alive += made.nbytes
        self.peak = max(self.peak, self.alive)
        weakref.finalize(made, self._gone, made.nbytes)
        return made

    def _gone(self, nbytes):
        self.alive -= nbytes


class OnDevice:
    """An array there, as the array API standard has it: no way to the host but ``__dlpack__``."""

    def __init__(self, device, values, dtype=None):
        self._device, self._values = device, values
        self.dtype = dtype or f"lib.{values.dtype.name}"
        self.shape = values.shape

    def reshape(self, *shape):
        return OnDevice(self._device, self._values.reshape(*shape), self.dtype)

    def __getitem__(self, key):
        return OnDevice(self._device, self._values[key], self.dtype)

    def __dlpack_device__(self):
        return (2, 0)  # kDLCUDA

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device != (1, 0):
            raise BufferError("the data lie on the device")
        return self._device.copied(self._values).__dlpack__(max_version=max_version)


class LikeCupy:
    """What CuPy's arrays have: slices, ``get`` and no way through numpy's own protocols."""

    def __init__(self, device, values):
        self._device, self._values = device, values
        self.__cuda_array_interface__ = {"version": 3}
        self.dtype, self.shape = values.dtype, values.shape

    def reshape(self, *shape):
        return LikeCupy(self._device, self._values.reshape(*shape))

    def __getitem__(self, key):
        return LikeCupy(self._device, self._values[key])

    def get(self):
        return self._device.copied(self._values)

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **keywords):
        raise BufferError("on the device")

    def __array__(self, *arguments, **keywords):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


@pytest.mark.parametrize("kind", [OnDevice, LikeCupy])
def test_a_device_holds_one_window_of_the_host_at_a_time(kind, tmp_path):
    """60 MiB come over in 8 windows, each gone before the next is fetched; nothing comes before."""
    device = Device()
    values = np.arange(5 * 3 * MIB, dtype="<f4").reshape(5, 3, MIB)
    tensors = {"a": kind(device, values), "b": kind(device, values[:, 0, :7])}
    plan = Writer(tensors).plan()
    assert 0 == device.copies
    plan.write_to_file(tmp_path / "m.bpk")
    assert (9, WINDOW) == (device.copies, device.peak)
    gc.collect()
    assert 0 == device.alive
    found = bpk.load_file(tmp_path / "m.bpk")
    assert np.array_equal(values, found["a"])
    assert np.array_equal(values[:, 0, :7], found["b"])


def test_save_takes_device_arrays_as_they_are(tmp_path):
    """Bytes in memory too; a dtype and an id are kept."""
    device = Device()
    bits = np.array([0x3F80, 0xC000], "<u2")
    tensors = [
        Tensor.from_array("bf16", OnDevice(device, bits), dtype="BF16", param_id=7),
        Tensor.from_array("bool", OnDevice(device, np.array([True, False]))),
        Tensor.from_array("none", OnDevice(device, np.zeros((0, 3), "<i8"))),
        Tensor.from_array("one", OnDevice(device, np.array(5, "<u8"))),
    ]
    pack = bpk.open(bpk.save(tensors))
    assert (DType.BF16, 7, [1.0, -2.0]) == (
        pack["bf16"].dtype,
        pack["bf16"].param_id,
        pack["bf16"].to_float32().tolist(),
    )
    assert (DType.BOOL, [True, False]) == (pack["bool"].dtype, pack["bool"].numpy().tolist())
    assert (DType.I64, (0, 3)) == (pack["none"].dtype, pack["none"].shape)
    assert (DType.U64, 5) == (pack["one"].dtype, pack["one"].numpy())


class Bfloat16OnDevice(OnDevice):
    """A bfloat16 array there, which numpy's DLPack does not know."""

    def __init__(self, device, values):
        super().__init__(device, values.view(torch.int16).numpy(), "torch.bfloat16")
        self._bits = values

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device != (1, 0):
            raise BufferError("the data lie on the device")
        return self._bits.__dlpack__()


def test_bfloat16_comes_from_a_device_with_its_bits():
    """By its capsule's element type, in and out."""
    values = torch.tensor([1.0, -2.5, 3e38, float("nan")], dtype=torch.bfloat16)
    tensor = Tensor.from_array("w", Bfloat16OnDevice(Device(), values))
    assert (DType.BF16, (4,)) == (tensor.dtype, tensor.shape)
    assert values.view(torch.int16).numpy().tobytes() == tensor.to_bytes()


def test_elements_that_burn_lacks_are_refused_by_name():
    """Before anything is fetched."""
    device = Device()
    with pytest.raises((TypeError, PlanError), match="complex64"):
        bpk.save({"z": OnDevice(device, np.zeros(3, "c8"))})
    assert 0 == device.copies


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint32", "bool"])
def test_jax_arrays_are_saved(dtype, tmp_path):
    """On the CPU by reference; from a device by windows, which its own slices make."""
    import jax.numpy as jnp

    values = jnp.arange(24).reshape(2, 3, 4).astype(dtype)
    expected = np.asarray(values)
    made = deferred("w", values)
    assert (str(made.dtype).split("(")[0], (2, 3, 4)) == (
        {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int8": "I8", "uint32": "U32", "bool": "Bool"}[dtype],
        made.shape,
    )  # fmt: skip
    assert expected.tobytes() == bpk.open(bpk.save([made]))["w"].to_bytes()


def test_jax_arrays_of_a_device_come_by_windows(monkeypatch, tmp_path):
    """The array poses as one of a GPU: its windows are cut by JAX and compiled once."""
    import jax.numpy as jnp

    from bpk_lite.desktop import providers

    values = jnp.arange(5 * MIB, dtype="float32").reshape(5, MIB)
    lengths = []
    to_host = providers._to_host
    monkeypatch.setattr(providers, "lies_on_device", lambda _value: True)
    monkeypatch.setattr(
        providers, "_to_host", lambda part, dtype: lengths.append(part.size) or to_host(part, dtype)
    )
    bpk.save_file([deferred("w", values)], tmp_path / "m.bpk")
    assert [2 * MIB, 2 * MIB, MIB] == lengths
    assert np.array_equal(np.asarray(values), bpk.load_file(tmp_path / "m.bpk")["w"])


def test_torch_tensors_are_fetched_when_the_writer_gets_there(tmp_path):
    """Strided ones by windows, and not if they were written to in between."""
    values = torch.arange(6 * MIB, dtype=torch.float32).reshape(2, 3, MIB)
    made = deferred("w", values.permute(2, 0, 1), param_id=3)
    assert ((MIB, 2, 3), 3) == (made.shape, made.param_id)
    bpk.save_file([made], tmp_path / "m.bpk")
    expected = values.permute(2, 0, 1).numpy()
    assert np.array_equal(expected, bpk.load_file(tmp_path / "m.bpk")["w"])
    values.add_(1)
    with pytest.raises(bpk.ProviderError, match="was written to"):
        bpk.save([made])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.int64])
def test_cuda_tensors_are_saved_by_windows(dtype, tmp_path):
    """From the GPU, contiguous and transposed, with one pinned window."""
    values = torch.randint(0, 2, (5000, 3001)).to("cuda", dtype)
    bpk.save_file({"a": values, "b": values.t()}, tmp_path / "m.bpk")
    with bpk.open(tmp_path / "m.bpk") as pack:
        for name, expected in (("a", values), ("b", values.t())):
            host = expected.cpu().contiguous()
            raw = host.view(torch.int16 if dtype == torch.bfloat16 else dtype).numpy()
            assert raw.tobytes() == pack[name].to_bytes()


def test_strided_arrays_are_copied_a_window_at_a_time(tmp_path):
    """A transposed array of 64 MiB costs windows, not another 64 MiB; bytes are row-major (D1)."""
    import tracemalloc

    values = np.arange(16 * MIB, dtype="<f4").reshape(4096, 4096)
    plan = Writer({"t": values.T, "r": values[::-1], "b": values[:, :1].astype(">f4").T}).plan()
    plan.write_to_file(tmp_path / "m.bpk")
    tracemalloc.start()
    plan.write_to_file(tmp_path / "m.bpk", durable=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * WINDOW
    found = bpk.load_file(tmp_path / "m.bpk")
    assert np.array_equal(values.T, found["t"])
    assert np.array_equal(values[::-1], found["r"])
    assert np.array_equal(values[:, :1].T, found["b"])


def test_rows_larger_than_a_window_are_cut_further(tmp_path):
    """A strided array of few, long rows, and one of no rows."""
    values = np.zeros((2, 3, 4 * MIB), "<f4")[:, :2]
    values[1, 1] = np.arange(4 * MIB)
    tensor = Tensor.from_array("w", values)
    assert [WINDOW] * 8 == [piece.nbytes for piece in tensor.pieces()]
    assert values.tobytes() == b"".join(tensor.pieces())
    assert [] == [p for p in Tensor.from_array("e", np.zeros((4, 0))[::2]).pieces() if p.nbytes]


def test_memory_maps_packs_and_functions_are_sources_too(tmp_path):
    """Each by one call, with the names of the new pack."""
    mapped = np.memmap(tmp_path / "raw", "<f4", "w+", shape=(3, 4))
    mapped[:] = 2
    bpk.save_file([Tensor.from_array("old", np.full(3, 3.0), param_id=8)], tmp_path / "old.bpk")
    with bpk.open(tmp_path / "old.bpk") as old:
        tensors = [
            deferred("mapped", mapped),
            deferred("pack", old["old"]),
            deferred("made", lambda: [b"\1\2", b"\3"], dtype="U8", shape=(3,), param_id=9),
        ]
        pack = bpk.open(bpk.save(tensors))
    assert (2.0, (3, 4)) == (pack["mapped"].numpy().max(), pack["mapped"].shape)
    assert (3.0, 8) == (pack["pack"].numpy().max(), pack["pack"].param_id)
    assert ([1, 2, 3], 9) == (pack["made"].numpy().tolist(), pack["made"].param_id)


def test_what_cannot_be_a_source_is_refused_by_name():
    """A function without a shape, another shape, and things that hold no data."""
    with pytest.raises(PlanError, match="'w' is made by a function: give its dtype and shape"):
        deferred("w", lambda: b"", dtype="F32")
    with pytest.raises(PlanError, match=r"'w' has shape \[3\], not \[4\]"):
        deferred("w", np.zeros(3), shape=(4,))
    with pytest.raises(TypeError, match="'w': expected an array, a tensor or a function, not str"):
        deferred("w", "text")
    with pytest.raises(PlanError, match=r"'w' is .* on meta"):
        deferred("w", torch.empty(3, device="meta"))
