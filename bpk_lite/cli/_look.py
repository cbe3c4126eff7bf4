"""The commands that look: inspect, verify, diff, hash. They ask `bpk_lite.inspect`, and print.

Exit status: 0 fine, 1 findings or differences, 2 the file or the command line is at fault.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bpk_lite.cli._shared import AsJson, File, bar, faults, opened, pack_of, print_json

if TYPE_CHECKING:
    from bpk_lite.convert import Contents
    from bpk_lite.inspect import TensorStats
    from bpk_lite.pack import Reader

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("inspect")(_inspect)
    app.command("verify")(_verify)
    app.command("diff")(_diff)
    app.command("hash")(_hash)


def _inspect(
    file: File,
    as_json: AsJson = False,
    as_tree: Annotated[
        bool, typer.Option("--tree", help="Group the tensors by their dotted paths.")
    ] = False,
    with_stats: Annotated[
        bool, typer.Option("--stats", help="Read the tensors: extremes, mean, deviation, NaN.")
    ] = False,
) -> None:
    """Show what a file of weights holds.

    Header, metadata, scalars, tensors, and what is odd. Reads no tensor data but for --stats.
    """
    from bpk_lite.inspect import summarize

    with faults(), opened(file) as held:
        summary = summarize(held, name=file if file != "-" else "<stdin>")
        stats = _stats(held) if with_stats else {}
    if as_json:
        found = summary.to_dict()
        for tensor in found["tensors"]:
            if tensor["name"] in stats:
                tensor["stats"] = stats[tensor["name"]].to_dict()
        print_json(found)
        return
    from bpk_lite.cli._show import show_summary

    show_summary(summary, stats, as_tree=as_tree)


def _stats(held: Reader | Contents) -> dict[str, TensorStats]:
    from bpk_lite.inspect import content_of, tensor_stats

    tensors = content_of(held).tensors
    total, done = sum(tensor.nbytes for tensor in tensors.values()), 0
    found = {}
    with bar("statistics") as progress:
        for name, tensor in tensors.items():

            def step(name: str, of_tensor: int, _: int, before: int = done) -> None:
                if progress is not None:
                    progress(name, before + of_tensor, total)

            found[name] = tensor_stats(tensor, progress=step)
            done += tensor.nbytes
    return found


def _verify(file: File, as_json: AsJson = False) -> None:
    """Report what is odd about a pack that opens.

    Exit status 1 if there is anything, 2 if it does not open. Odd are: overlapping and misaligned
    tensors, gaps, bytes that should be zero, bytes behind the end, odd lengths of quantized
    tensors, repeated parameter ids, booleans that are neither 0 nor 1, and a pack that holds
    nothing.
    """
    from bpk_lite.inspect import verify

    with faults(), pack_of(file) as pack:
        findings = verify(pack)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        from bpk_lite.cli._show import show_findings

        show_findings(file, findings)
    if findings:
        raise typer.Exit(1)


def _diff(
    first: Annotated[str, typer.Argument(metavar="A", help="The first file, the old one.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The second, the new one.")],
    as_json: AsJson = False,
    no_data: Annotated[
        bool, typer.Option("--no-data", help="Compare names, dtypes and shapes; read no data.")
    ] = False,
) -> None:
    """Compare two files of weights.

    Exit status 0 if they hold the same, 1 if not. Tensors are paired by name, whatever order and
    format they are stored in.
    """
    from bpk_lite.inspect import diff

    with faults(), opened(first) as a, opened(second) as b, bar("comparing") as progress:
        found = diff(a, b, data=not no_data, progress=progress)
    if as_json:
        print_json(found.to_dict())
    else:
        from bpk_lite.cli._show import show_diff

        show_diff(found)
    if found.differs:
        raise typer.Exit(1)


def _hash(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="What to hash.")],
    as_json: AsJson = False,
    algorithm: Annotated[
        str, typer.Option("--algorithm", help="sha256, blake2b, sha3_256, …")
    ] = "sha256",
    tensors_only: Annotated[
        bool,
        typer.Option("--tensors-only", help="Leave out metadata, scalars and parameter ids."),
    ] = False,
    each: Annotated[bool, typer.Option("--each", help="Hash each tensor by itself too.")] = False,
) -> None:
    """Print the hash of what files hold.

    It is the same for the same content in any order, layout and format.
    """
    from bpk_lite.inspect import content_of, digest, tensor_digest
    from bpk_lite.pack._format import safe_text

    found: list[dict[str, Any]] = []
    for file in files:
        tensors: dict[str, str] = {}
        with faults(), opened(file) as held, bar("hashing") as progress:
            whole = digest(held, algorithm, tensors_only=tensors_only, progress=progress)
            if each:
                tensors = {
                    name: tensor_digest(tensor, algorithm, progress=progress)
                    for name, tensor in content_of(held).tensors.items()
                }
        found.append({"file": file, "algorithm": algorithm, "digest": whole})
        if each:
            found[-1]["tensors"] = tensors
        if not as_json:
            for name, value in tensors.items():
                typer.echo(f"{value}  {safe_text(file)}:{safe_text(name)}")
            typer.echo(f"{whole}  {safe_text(file)}")
    if as_json:
        print_json(found)
