"""From one format to another: what is renamed and changed is known before anything is written.

Bytes that nothing changes are streamed from source to destination as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from bpk_lite.convert._plans import plan_of
from bpk_lite.convert._types import module_types, prefix_of
from bpk_lite.pack import DType, Layout, PlanError, Tensor
from bpk_lite.store import (
    Adapter,
    BurnToPyTorchAdapter,
    Context,
    FloatCastAdapter,
    HalfPrecisionAdapter,
    IdentityAdapter,
    KeyRemapper,
    NameCollision,
    PathFilter,
    PyTorchToBurnAdapter,
    map_indices_contiguous_except,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bpk_lite.convert._contents import Contents, Format

__all__ = ["Change", "Conversion", "Layouts", "convert", "format_of"]

Layouts: TypeAlias = Literal["pytorch-to-burn", "burn-to-pytorch"]
_EXTENSIONS: dict[str, Format] = {
    ".bpk": "burnpack",
    ".safetensors": "safetensors",
    ".pt": "pytorch",
    ".pth": "pytorch",
    ".bin": "pytorch",
    ".npz": "npz",
}
_PRELU = "PRelu"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one tensor.

    Attributes:
        old: its name in the source.
        new: its name in the destination.
        old_dtype: element type in the source.
        new_dtype: element type in the destination.
        old_shape: shape in the source.
        new_shape: shape in the destination.
        module: what its module was taken for, where that matters.
    """

    old: str
    new: str
    old_dtype: str
    new_dtype: str
    old_shape: tuple[int, ...]
    new_shape: tuple[int, ...]
    module: str = ""

    @property
    def is_change(self) -> bool:
        """Whether anything is different."""
        return (self.old, self.old_dtype, self.old_shape) != (
            self.new,
            self.new_dtype,
            self.new_shape,
        )


@dataclass(frozen=True, slots=True)
class Conversion:
    """A destination, laid out but not written.

    Attributes:
        plan: write it with `Layout.write_to_file` or `Layout.into_bytes`.
        format: of the destination.
        changes: one for each tensor, in the order of the source.
        left_out: names that the filter left out.
        notes: what could not be taken over, in sentences.
    """

    plan: Layout
    format: Format
    changes: tuple[Change, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def format_of(path: str) -> Format:
    """Return the format that a file's name asks for; a burnpack if it has no extension.

    Raises:
        PlanError: an extension of no format that can be written.
    """
    name = path.replace("\\", "/").rpartition("/")[2]
    dot = name.rfind(".", 1)
    if dot < 0:
        return "burnpack"
    found = _EXTENSIONS.get(name[dot:].lower())
    if found is None:
        raise PlanError(
            f"{path}: no format is written to {name[dot:]!r}; there are {', '.join(_EXTENSIONS)}"
        )
    return found


def convert(
    source: Contents,
    to: Format = "burnpack",
    *,
    layout: Layouts | None = None,
    module: Mapping[str, str] | None = None,
    remap: KeyRemapper | Mapping[str, str] | Iterable[tuple[str, str]] = (),
    filter: PathFilter | None = None,
    reindex: bool = False,
    keep_indices: Iterable[str] | Callable[[str], bool] = (),
    adapter: Adapter | None = None,
    half: bool = False,
    dtype: DType | str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Conversion:
    """Lay out what `source` holds as a file of another format. Reads no tensor data.

    Args:
        source: from `open_contents`; it must stay open until the result is written.
        to: the format to write.
        layout: turn linear weights over and rename the params of norms, from PyTorch's layout to
            Burn's or back; see `module_types` for how a file shows what is what. None leaves both.
        module: patterns of prefixes and the type of module there, where the guess is wrong.
        remap: new names, as in a store; applied to the names of the source.
        filter: which tensors, by their names in the source.
        reindex: number lists without gaps.
        keep_indices: patterns of lists that keep their numbers (S172).
        adapter: what else to do to each tensor, in the context of its module's type.
        half: float32 to float16 and back, in modules that bear it (S204 to S209).
        dtype: cast every float to this.
        metadata: instead of the source's.

    Raises:
        NameCollision: two tensors, or a tensor and a scalar, get one name.
        UnsupportedDType: the format lacks an element type.
        ValueError: a pattern or a type of module that is none.
    """
    kept = [one for one in source.tensors if filter is None or filter.matches(one.name, "")]
    left_out = {one.name for one in source.tensors} - {one.name for one in kept}
    types = module_types(source.tensors, module)
    renamer = remap if isinstance(remap, KeyRemapper) else KeyRemapper(remap)
    renamed, _ = renamer.remap(kept)
    if reindex or not (isinstance(keep_indices, tuple) and not keep_indices):
        renamed, _ = map_indices_contiguous_except(renamed, keep_indices)
    steps = _steps(layout, adapter, half, dtype)
    tensors: dict[str, Tensor] = {}
    changes: list[Change] = []
    origin: dict[str, str] = {}
    for old, new in zip(kept, renamed, strict=True):
        kind = types[prefix_of(old.name)]
        made = steps.adapt(new, Context((f"Struct:{kind}",)))
        if layout is not None and kind == _PRELU:
            made = _prelu(made, layout)
        if made.name in tensors:
            raise NameCollision(
                f"{origin[made.name]!r} and {old.name!r} would both be named {made.name!r}"
            )
        tensors[made.name], origin[made.name] = made, old.name
        changes.append(
            Change(
                old.name,
                made.name,
                str(old.dtype),
                str(made.dtype),
                old.shape,
                made.shape,
                "" if layout is None else kind,
            )
        )
    kept_metadata = _metadata(source, to, layout) if metadata is None else dict(metadata)
    notes = list(source.notes)
    plan = plan_of(to, list(tensors.values()), source, kept_metadata, notes)
    notes += _fused(kept, layout)
    return Conversion(plan, to, tuple(changes), tuple(sorted(left_out)), tuple(notes))


def _steps(
    layout: Layouts | None, adapter: Adapter | None, half: bool, dtype: DType | str | None
) -> Adapter:
    steps: Adapter = IdentityAdapter()
    if layout is not None:
        if layout not in ("pytorch-to-burn", "burn-to-pytorch"):
            raise ValueError(f"layout is pytorch-to-burn or burn-to-pytorch, not {layout!r}")
        steps = PyTorchToBurnAdapter() if layout == "pytorch-to-burn" else BurnToPyTorchAdapter()
    if adapter is not None:
        steps = steps.chain(adapter)
    if half:
        steps = steps.chain(HalfPrecisionAdapter())
    return steps if dtype is None else steps.chain(FloatCastAdapter.to(dtype))


def _prelu(tensor: Tensor, layout: Layouts) -> Tensor:
    old, new = ("weight", "alpha") if layout == "pytorch-to-burn" else ("alpha", "weight")
    prefix, dot, last = tensor.name.rpartition(".")
    return tensor.replace(name=prefix + dot + new) if last == old else tensor


def _fused(tensors: list[Tensor], layout: Layouts | None) -> list[str]:
    """Say which weights are cut otherwise in Burn, and cannot be without the module."""
    if layout != "pytorch-to-burn":
        return []
    endings = ("in_proj_weight", "weight_ih_l0", "weight_hh_l0")
    found = [one.name for one in tensors if one.name.endswith(endings)]
    if not found:
        return []
    names = ", ".join(found)
    return [f"{names}: several params in Burn, kept whole; bpk_lite.torch cuts them by the module"]


def _metadata(source: Contents, to: Format, layout: Layouts | None) -> dict[str, str]:
    """Return the metadata to write; ``format`` says which layout a SafeTensors file has."""
    kept = dict(source.metadata)
    if layout == "pytorch-to-burn" and kept.get("format") == "pt":
        del kept["format"]
    if to == "safetensors" and (layout == "burn-to-pytorch" or (
        source.format == "pytorch" and layout is None
    )):  # fmt: skip
        kept["format"] = "pt"
    return kept
