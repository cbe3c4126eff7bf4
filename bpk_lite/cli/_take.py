"""The commands that take things out: extract, embed.

Exit status: 0 done, 2 the file or the command line is at fault.
"""

from __future__ import annotations

from typing import Annotated

import typer

from bpk_lite.cli._shared import (
    AsJson,
    File,
    Overwrite,
    bar,
    faults,
    opened,
    print_json,
    say,
)

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("extract")(_extract)
    app.command("embed")(_embed)


def _extract(
    file: File,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Tensors, by name or glob: 'fc.*'.")
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="DIR|FILE", help="A folder, or for one tensor a .npy or .bin file."
        ),
    ] = ".",
    raw: Annotated[
        bool, typer.Option("--raw", help="Write the bytes as stored, without a header.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write tensors to files, as .npy or raw.

    BF16, which .npy lacks, is widened to float32, exactly; booleans become numpy's, and quantized
    values float32 where they can be told. In a folder a file is named after its tensor, with
    everything but letters, digits, ".", "_" and "-" replaced.
    """
    from bpk_lite.cli._extract import extraction

    written = []
    with faults(), opened(file) as held:
        for part in extraction(held, names, to, raw=raw):
            with bar(part.name) as progress:
                part.plan.write_to_file(
                    part.path, overwrite=overwrite, extension=False, progress=progress
                )
            written.append(part.to_dict())
            if not as_json:
                say(f"{part.path}: {part.name}, {part.note}")
    if as_json:
        print_json({"written": written})


def _embed(
    file: File,
    package: Annotated[
        str, typer.Option("--package", metavar="NAME", help="Make a Python package of that name.")
    ] = "",
    html: Annotated[str, typer.Option("--html", metavar="OUT", help="Make one HTML page.")] = "",
    to: Annotated[
        str, typer.Option("--to", metavar="DIR", help="The folder that the package goes into.")
    ] = ".",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Put a pack into a Python package or a page.

    The package has a function `load()` that gives the pack, read from wherever the package is
    installed. The page needs no script and no network; the pack is in it, as a download. Files of
    other formats become packs first.
    """
    from bpk_lite.cli._embed import embed_html, embed_package

    with faults(), opened(file) as held:
        if bool(package) == bool(html):
            raise ValueError("give --package NAME or --html OUT, one of them")
        if package:
            written = embed_package(held, package, to, overwrite=overwrite)
        else:
            written = embed_html(held, file, html, overwrite=overwrite)
    if as_json:
        print_json({"written": written})
    else:
        for path in written:
            say(path)
