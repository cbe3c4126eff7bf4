"""Tensors to and from torch by DLPack and the array protocol."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bpk_lite as bpk
from bpk_lite.pack import DType, PlanError, Reader

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8,
         torch.uint8, torch.bool]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_torch_tensors_are_saved_and_come_back(dtype):
    """Every common dtype, bfloat16 included, of any layout and with gradients, by value."""
    values = (torch.arange(24).reshape(2, 3, 4) % 2).to(dtype)
    parameter = values.requires_grad_() if dtype.is_floating_point else values
    tensors = {
        "plain": parameter,
        "strided": values.permute(2, 0, 1)[::2],
        "scalar": values[0, 0, 1],
    }
    pack = Reader.from_bytes(bpk.save(tensors))
    for name, tensor in tensors.items():
        found = torch.from_dlpack(pack[name])
        assert (dtype, tensor.shape) == (found.dtype, found.shape)
        assert torch.equal(tensor.detach(), found)


def test_a_cpu_tensor_is_kept_by_reference():
    """Saving copies nothing before the writer does."""
    value = torch.ones(4)
    tensor = bpk.Tensor.from_array("w", value)
    value[0] = 5
    assert [5, 1, 1, 1] == tensor.numpy().tolist()


def test_bfloat16_bits_are_exact():
    """The bits arrive unchanged, both ways."""
    value = torch.tensor([1.5, -0.0, float("inf"), 3e38], dtype=torch.bfloat16)
    pack = Reader.from_bytes(bpk.save({"b": value}))
    assert DType.BF16 == pack["b"].dtype
    bits = value.view(torch.int16).numpy().astype(np.uint16)
    assert bits.tolist() == np.frombuffer(pack["b"].buffer(), "<u2").tolist()
    assert torch.equal(value, torch.from_dlpack(pack["b"]))


def test_writing_through_torch_cannot_change_the_file():
    """Torch ignores that a view is read-only, so what it gets by default is safe to write."""
    blob = bpk.save({"w": np.ones(3, "<f4")})
    before = bytes(blob)
    given = torch.from_dlpack(Reader.from_bytes(blob)["w"])
    given += 1
    assert before == blob


def test_meta_and_complex_tensors_are_refused_by_name():
    """No data and no element type: the error names the tensor."""
    for value in (torch.ones(2, device="meta"), torch.ones(2, dtype=torch.complex64)):
        with pytest.raises(PlanError, match="tensor 'x'"):
            bpk.save({"x": value})
