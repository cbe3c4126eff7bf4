"""The commands that write: convert, rename, select, merge, set-metadata.

What they need is imported when one runs, so that `bpk inspect` starts without it.
"""

# ruff: noqa: B006 - typer reads the defaults and never changes them

from __future__ import annotations

import contextlib
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bpk_lite.cli._shared import AsJson, Overwrite, bar, faults, print_json, say

if TYPE_CHECKING:
    from bpk_lite.convert import Contents, Conversion
    from bpk_lite.convert._convert import Layouts
    from bpk_lite.pack._header import PackLayout
    from bpk_lite.store import PathFilter

__all__ = ["register"]

Src = Annotated[
    str, typer.Argument(metavar="SRC", help="What to read; its content says what it is.")
]
Dst = Annotated[str, typer.Argument(metavar="DST", help="What to write; its extension says what.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]
Map = Annotated[
    list[str],
    typer.Option(
        "--map", metavar="FROM=TO", help="Rename by pattern, as Rust's regex; repeatable, in order."
    ),
]
Filter = Annotated[
    list[str],
    typer.Option("--filter", metavar="REGEX", help="Only tensors whose name matches; repeatable."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("convert")(_convert)
    app.command("rename")(_rename)
    app.command("select")(_select)
    app.command("merge")(_merge)
    app.command("set-metadata")(_set_metadata)


def _convert(
    src: Src,
    dst: Dst,
    map_: Map = [],
    filter_: Filter = [],
    from_adapter: Annotated[
        str, typer.Option("--from-adapter", help="pytorch: bring its layout into Burn's.")
    ] = "",
    to_adapter: Annotated[
        str, typer.Option("--to-adapter", help="pytorch: bring Burn's layout into PyTorch's.")
    ] = "",
    module: Annotated[
        list[str],
        typer.Option(
            "--module", metavar="REGEX=TYPE", help="Where the type of a module is guessed wrong."
        ),
    ] = [],
    reindex: Annotated[bool, typer.Option("--reindex", help="Number lists without gaps.")] = False,
    reindex_except: Annotated[
        list[str],
        typer.Option("--reindex-except", metavar="REGEX", help="Lists that keep their numbers."),
    ] = [],
    top_level_key: Annotated[
        str | None, typer.Option("--top-level-key", help="One entry of a PyTorch checkpoint.")
    ] = None,
    half: Annotated[
        bool, typer.Option("--half", help="float32 to float16 (and back) where modules bear it.")
    ] = False,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="Cast every float: F32, F16, BF16, F64.")
    ] = None,
    unaligned: Annotated[
        bool, typer.Option("--unaligned", help="SRC is a pack of Burn 0.19, without alignment.")
    ] = False,
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Convert between .bpk, .safetensors, .pt and .npz.

    Reads .gguf and sharded models too.
    """
    from bpk_lite.convert import convert, format_of, open_contents

    packing: PackLayout = "unaligned" if unaligned else "aligned"
    with faults(), open_contents(src, top_level_key=top_level_key, layout=packing) as source:
        made = convert(
            source,
            format_of(dst),
            layout=_layout(from_adapter, to_adapter),
            module=dict(_pairs(module, "--module")),
            remap=_pairs(map_, "--map"),
            filter=_filter(filter_),
            reindex=reindex,
            keep_indices=tuple(reindex_except),
            half=half,
            dtype=dtype,
        )
        _check_selection(made, src)
        if source.format == "pytorch" and made.format == "burnpack" and not from_adapter:
            say("names and layout stay PyTorch's; --from-adapter pytorch brings them into Burn's")
        _write(made, dst, dry_run=dry_run, overwrite=overwrite, as_json=as_json)


def _rename(
    src: Src,
    dst: Dst,
    map_: Map = [],
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Rename tensors by patterns.

    Their bytes stay as they are.
    """
    from bpk_lite.convert import convert, format_of, open_contents

    with faults(), open_contents(src) as source:
        made = convert(source, format_of(dst), remap=_pairs(_needed(map_, "--map"), "--map"))
        _write(made, dst, dry_run=dry_run, overwrite=overwrite, as_json=as_json)


def _select(
    src: Src,
    dst: Dst,
    filter_: Filter = [],
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Keep the tensors whose names match.

    Scalars and metadata stay.
    """
    from bpk_lite.convert import convert, format_of, open_contents

    with faults(), open_contents(src) as source:
        made = convert(source, format_of(dst), filter=_filter(_needed(filter_, "--filter")))
        _check_selection(made, src)
        _write(made, dst, dry_run=dry_run, overwrite=overwrite, as_json=as_json)


def _merge(
    sources: Annotated[list[str], typer.Argument(metavar="SRC...", help="What to read.")],
    into: Annotated[str, typer.Option("--into", "-o", metavar="DST", help="What to write.")],
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Put the tensors of several files into one.

    A name that occurs twice is an error.
    """
    from bpk_lite.convert import convert, format_of, open_contents

    with faults(), contextlib.ExitStack() as stack:
        parts = [stack.enter_context(open_contents(src)) for src in sources]
        made = convert(_merged(parts, sources), format_of(into))
        _write(made, into, dry_run=dry_run, overwrite=overwrite, as_json=as_json)


def _set_metadata(
    src: Src,
    dst: Dst,
    entries: Annotated[list[str], typer.Argument(metavar="[KEY=VALUE]...")] = [],
    remove: Annotated[
        list[str], typer.Option("--remove", metavar="KEY", help="Drop an entry; repeatable.")
    ] = [],
    clear: Annotated[bool, typer.Option("--clear", help="Drop all entries first.")] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Add, replace and remove metadata entries.

    Tensors and scalars stay.
    """
    from bpk_lite.convert import convert, format_of, open_contents

    with faults(), open_contents(src) as source:
        kept = {} if clear else dict(source.metadata)
        for key in remove:
            if key not in source.metadata:
                raise ValueError(f"{src} has no metadata entry {key!r}")
            kept.pop(key, None)
        kept.update(_pairs(entries, "KEY=VALUE"))
        made = convert(source, format_of(dst), metadata=kept)
        _write(made, dst, dry_run=False, overwrite=overwrite, as_json=as_json)


def _merged(parts: list[Contents], names: list[str]) -> Contents:
    """Return the contents of several files as one's; equal metadata entries may repeat."""
    from bpk_lite.store import NameCollision

    whole = replace(parts[0], tensors=[], scalars={}, metadata={}, notes=[], _open=None)
    home: dict[tuple[str, str], str] = {}
    for part, name in zip(parts, names, strict=True):
        found: dict[str, dict[str, Any]] = {
            "tensor": {one.name: one for one in part.tensors},
            "scalar": part.scalars,
            "metadata entry": part.metadata,
        }
        for what, table in found.items():
            for key, value in table.items():
                earlier = home.setdefault((what, key), name)
                if earlier != name and not (
                    what == "metadata entry" and whole.metadata[key] == value
                ):
                    raise NameCollision(f"{what} {key!r} is in {earlier} and in {name}")
        whole.tensors += part.tensors
        whole.scalars |= part.scalars
        whole.metadata |= part.metadata
        whole.notes += part.notes
    return whole


def _layout(from_adapter: str, to_adapter: str) -> Layouts | None:
    for name, value in (("--from-adapter", from_adapter), ("--to-adapter", to_adapter)):
        if value not in ("", "pytorch"):
            raise ValueError(f"{name} is pytorch, not {value!r}")
    if from_adapter and to_adapter:
        raise ValueError("--from-adapter and --to-adapter undo each other; give one")
    if from_adapter:
        return "pytorch-to-burn"
    return "burn-to-pytorch" if to_adapter else None


def _pairs(given: list[str], what: str) -> list[tuple[str, str]]:
    pairs = []
    for text in given:
        left, equals, right = text.partition("=")
        if not equals or not left:
            raise ValueError(f"{what}: {text!r} has no '=' in it")
        pairs.append((left, right))
    return pairs


def _check_selection(made: Conversion, src: str) -> None:
    if made.left_out and not made.changes:
        from bpk_lite.pack import PlanError

        raise PlanError(f"no tensor of {src} matches; there are {', '.join(made.left_out[:10])}")


def _needed(given: list[str], option: str) -> list[str]:
    if not given:
        raise ValueError(f"nothing to do: give {option}")
    return given


def _filter(patterns: list[str]) -> PathFilter | None:
    from bpk_lite.store import PathFilter

    return PathFilter().with_regexes(patterns) if patterns else None


def _write(made: Conversion, dst: str, *, dry_run: bool, overwrite: bool, as_json: bool) -> None:
    for note in made.notes:
        say(note)
    written = None
    if not dry_run:
        with bar("writing") as progress:
            written = made.plan.write_to_file(dst, overwrite=overwrite, progress=progress)
        changed = sum(change.is_change for change in made.changes)
        say(f"{written}: {len(made.changes)} tensors, {changed} changed, {made.plan.size} bytes")
    if as_json:
        print_json({
            "written": written,
            "format": made.format,
            "size": made.plan.size,
            "tensors": [asdict(change) for change in made.changes],
            "left_out": list(made.left_out),
            "notes": list(made.notes),
        })  # fmt: skip
    elif dry_run:
        from bpk_lite.cli._show import show_changes

        show_changes(made)
