"""The ES modules joined into one: the same behaviour, and no form that could not be joined."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bpk_lite_widgets._modules import ModuleFormError, join

pytestmark = pytest.mark.desktop

STATIC = Path(__file__).parents[2] / "widgets" / "bpk_lite_widgets" / "static"


def write(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.mjs").write_text(text)
    return folder


def run(module, tmp_path):
    """Return the default export of a module, by node."""
    node = shutil.which("node")
    assert node, "node is not installed"
    (tmp_path / "joined.mjs").write_text(module)
    code = "import v from './joined.mjs'; console.log(JSON.stringify(v))"
    done = subprocess.run(
        [node, "--input-type=module", "-e", code],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_joined_modules_do_what_they_did_apart(tmp_path):
    """Each has a scope of its own, runs once, and gives what it exports."""
    write(
        tmp_path,
        a="export const log = [];\nconst secret = 1;\nlog.push('a');\nexport function one() {\n  return secret;\n}\n",
        b='import { log, one } from "./a.mjs";\n\nconst secret = 2;\nlog.push("b");\nexport class Two {\n  value = one() + secret;\n}\n',
        c='/** Words. */\n\nimport { log } from "./a.mjs";\nimport { Two as Other } from "./b.mjs";\n\nconst found = { value: new Other().value, log };\nexport default found;\n',
    )

    assert {"value": 3, "log": ["a", "b"]} == run(join(tmp_path, "c.mjs"), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        'import a from "./a.mjs";\nexport default 1;',
        'import * as a from "./a.mjs";\nexport default 1;',
        'import { a } from "https://example.org/a.mjs";\nexport default 1;',
        "const a = 1;\nexport { a };\nexport default 1;",
        "export let a = 1;\nexport default 1;",
    ],
)
def test_other_forms_are_refused(tmp_path, text):
    """The message has the line, so that nothing is joined wrongly in silence."""
    write(tmp_path, main=text)

    with pytest.raises(ModuleFormError, match=r"cannot be joined: (im|ex)port"):
        join(tmp_path, "main.mjs")


def test_modules_that_need_each_other_are_refused(tmp_path):
    """The cycle is spelled out."""
    write(tmp_path, a='import { b } from "./b.mjs";\nexport const a = 1;\nexport default a;',
          b='import { a } from "./a.mjs";\nexport const b = 1;')  # fmt: skip

    with pytest.raises(ModuleFormError, match=r"a.mjs imports b.mjs imports a.mjs"):
        join(tmp_path, "a.mjs")


def test_comments_are_left_out_and_code_is_not():
    """A notebook keeps the text; a comment that begins a line with code after it is no comment."""
    joined = join(STATIC, "widget.mjs")

    assert "/** A strip of tabs" not in joined
    assert "class Grid {" in joined
    assert "export default { render };" in joined


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.mjs")), ids=lambda path: path.name)
def test_no_module_turns_text_into_elements_or_code(path):
    """Names in a file are hostile: no markup is parsed and no text is run."""
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|setAttribute\(\"(on|style)"

    assert [] == re.findall(forbidden, path.read_text())
