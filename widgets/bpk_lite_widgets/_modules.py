"""The ES modules in ``static/`` as one, since anywidget takes one file.

A bundler would do, but then a generated file would be kept beside its sources, or installing would
need node. The modules are ours and of one form, so joining them is a few lines: each becomes a
function that runs once, in the order of their imports, and what it exports becomes an object::

    const m1 = (() => { …; return { h, svg }; })();
    const m2 = (() => { const { h } = m1; …; return { mount }; })();

Scopes stay apart as in real modules. What the form leaves out is refused by name: cycles, default
exports but for the entry's, exports that are reassigned, imports from elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["ModuleFormError", "join"]

_IMPORT: Final = re.compile(
    r"""^import \{ (?P<names>[\w, ]+) \} from "\./(?P<file>[\w-]+\.mjs)";$""", re.MULTILINE
)
_EXPORT: Final = re.compile(
    r"^export (?P<rest>(?:async )?(?:function\*?|class|const) (?P<name>\w+))", re.MULTILINE
)
_DEFAULT: Final = re.compile(r"^export default (?P<value>.+);$", re.MULTILINE)
_OTHER: Final = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_COMMENT: Final = re.compile(r"^[ \t]*/\*\*(?:(?!\*/)[\s\S])*\*/\n", re.MULTILINE)


class ModuleFormError(ValueError):
    """A module is not of the form that can be joined; says which, and what is in the way."""


def join(folder: Traversable, entry: str) -> str:
    """Return the module `entry` of `folder` and all that it imports as the text of one module.

    Comments are left out: a notebook keeps this text.

    Raises:
        ModuleFormError: an import or export of another form, or modules that need each other.
    """
    done: dict[str, str] = {}
    parts: list[str] = []
    default: list[str] = []

    def add(file: str, path: tuple[str, ...]) -> str:
        if file in path:
            raise ModuleFormError(f"{' imports '.join((*path, file))}")
        if file in done:
            return done[file]
        text = folder.joinpath(file).read_text(encoding="utf-8")
        text = _COMMENT.sub("", text)
        text = _IMPORT.sub(
            lambda found: (
                f"const {{ {found['names'].replace(' as ', ': ')} }} = "
                f"{add(found['file'], (*path, file))};"
            ),
            text,
        )
        names = [found["name"] for found in _EXPORT.finditer(text)]
        text = _EXPORT.sub(lambda found: found["rest"], text)
        if file == entry:
            default.extend(found["value"] for found in _DEFAULT.finditer(text))
            text = _DEFAULT.sub("", text)
        other = _OTHER.search(text)
        if other is not None:
            raise ModuleFormError(f"{file}: cannot be joined: {other[0]}")
        if file == entry:
            parts.append(text.strip())
            return ""
        name = f"m{len(done) + 1}"
        done[file] = name
        parts.append(
            f"const {name} = (() => {{\n{text.strip()}\nreturn {{ {', '.join(names)} }};\n}})();"
        )
        return name

    add(entry, ())
    if len(default) != 1:
        raise ModuleFormError(f"{entry}: expected one default export, found {len(default)}")
    return "\n".join([*parts, f"export default {default[0]};"]) + "\n"
