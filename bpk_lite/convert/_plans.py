"""Lay tensors out in each of the formats that can be written."""

from __future__ import annotations

import io
import json

import numpy as np

from bpk_lite.convert._contents import SCALARS_KEY, Contents, Format
from bpk_lite.nn._cast import convert_tensor
from bpk_lite.pack import DType, Layout, PlanError, Tensor, Writer
from bpk_lite.store import SafetensorsPlan, UnsupportedDType
from bpk_lite.store._zip_plan import ZipEntry, ZipPlan
from bpk_lite.store.pytorch import state_dict_plan

__all__ = ["plan_of"]


def plan_of(
    to: Format,
    tensors: list[Tensor],
    source: Contents,
    metadata: dict[str, str],
    notes: list[str],
) -> Layout:
    """Lay tensors out in a format; what has no place there becomes a note.

    Raises:
        UnsupportedDType: the format lacks an element type.
        NameCollision, PlanError: names that the format cannot hold.
    """
    if to == "burnpack":
        return Writer(tensors, metadata=metadata, scalars=source.scalars).plan()
    if to == "safetensors":
        if source.scalars:
            metadata[SCALARS_KEY] = json.dumps(
                {name: [one.kind, one.value] for name, one in source.scalars.items()}
            )
        return SafetensorsPlan.of(tensors, metadata or None)
    if metadata:
        notes.append(f"{to} has no place for metadata: {', '.join(sorted(metadata))} left out")
    values = {name: one.value for name, one in source.scalars.items()}
    if to == "pytorch":
        return state_dict_plan(tensors, values)
    if to == "npz":
        scalars = [Tensor.from_array(name, np.asarray(value)) for name, value in values.items()]
        return _npz(tensors + scalars)
    raise PlanError(f"{to} cannot be written")


def _npz(tensors: list[Tensor]) -> ZipPlan:
    """Lay out what `numpy.savez` would write."""
    entries = []
    for tensor in tensors:
        if tensor.dtype.kind == "quantized" or tensor.dtype == DType.BF16:
            raise UnsupportedDType(
                f"tensor {tensor.name!r} is {tensor.dtype}: numpy has no such type; cast it"
            )
        if tensor.dtype.kind == "bool":
            tensor = convert_tensor(tensor, DType.BOOL)
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header,
            {
                "descr": np.lib.format.dtype_to_descr(_array_dtype(tensor.dtype)),
                "fortran_order": False,
                "shape": tensor.shape,
            },
        )
        entries.append(ZipEntry(f"{tensor.name}.npy", header.getvalue(), tensor))
    return ZipPlan(entries, tensors)


def _array_dtype(dtype: DType) -> np.dtype[np.generic]:
    return dtype.numpy if dtype == DType.BOOL else dtype.stored
