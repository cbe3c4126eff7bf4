"""How `bpk` starts: at once, with help, with completion, and with a way out of every fault."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.test_commands import run

pytestmark = pytest.mark.desktop

COMMANDS = [
    "inspect", "verify", "diff", "hash", "convert", "rename", "select", "merge", "set-metadata",
    "extract", "embed",
]  # fmt: skip
HEAVY = {"numpy", "cbor2", "rich", "torch", "ml_dtypes", "fsspec", "gguf"}


def bpk(*args, **env):
    """Run the installed command, as a shell does."""
    program = os.path.join(os.path.dirname(sys.executable), "bpk")
    return subprocess.run(
        [program, *args], capture_output=True, text=True, env={**os.environ, "COLUMNS": "80", **env}
    )


@pytest.mark.parametrize(
    "args", [["--help"], ["-h"], [], ["--version"], ["inspect", "--help"], ["nonsense"]]
)
def test_help_loads_nothing_heavy(args):
    """Neither numpy nor rich: that is why it answers in a tenth of a second."""
    code = (
        "import sys, runpy\n"
        f"sys.argv = ['bpk', *{args!r}]\n"
        "try: runpy.run_module('bpk_lite', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print('LOADED', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.rpartition("LOADED ")[2].split()}
    assert not loaded & HEAVY


def test_help_names_every_command_in_a_line():
    """With what it does, not cut short."""
    out = bpk("--help").stdout
    for command in COMMANDS:
        assert f"\n  {command} " in out
    assert "..." not in out.partition("Commands:")[2]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command):
    """`--help` of each, and `--json` in it."""
    done = bpk(command, "--help")
    assert (0, True) == (done.returncode, "--json" in done.stdout)


@pytest.mark.parametrize(
    "args", [["nonsense"], ["inspect"], ["inspect", "a", "--nonsense"], ["diff", "a"]]
)
def test_a_wrong_command_line_has_status_2(args):
    """And says how it is used."""
    done = bpk(*args)
    assert (2, "", True) == (done.returncode, done.stdout, "Usage: bpk" in done.stderr)


@pytest.mark.parametrize(
    ("words", "expected"),
    [("bpk in", ["inspect"]), ("bpk ", COMMANDS), ("bpk e", ["extract", "embed"]),
     ("bpk inspect --st", ["--stats"]), ("bpk hash --", ["--json", "--algorithm", "--tensors-only", "--each", "--help"])],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_completes_commands_and_options(shell, words, expected):
    """What the shell's own script asks for, and what it is answered."""
    env = {"_BPK_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        env |= {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    else:
        env |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = bpk(**env)
    assert 0 == done.returncode
    if shell == "zsh":
        found = [
            part.partition('"')[0] for part in done.stdout.replace('\n"', '("').split('("')[1:]
        ]
    else:
        found = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert sorted(expected) == sorted(found)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_can_be_had(shell):
    """It names the command and asks it."""
    script = bpk(_BPK_COMPLETE=f"source_{shell}").stdout
    assert "_BPK_COMPLETE=complete_" + shell in script
    assert "bpk" in script


def test_bash_itself_completes():
    """The script in a real bash."""
    code = (
        'eval "$(_BPK_COMPLETE=source_bash bpk)"; COMP_WORDS=(bpk ver); COMP_CWORD=1; '
        '_bpk_completion bpk; printf "%s " "${COMPREPLY[@]}"; complete -p bpk'
    )
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(
        ["bash", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        check=True,
    )
    assert "verify complete -o default -F _bpk_completion bpk\n" == done.stdout  # files too


def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    """`bpk inspect … | head -1`."""
    import numpy as np

    import bpk_lite

    path = bpk_lite.save_file({f"t{i}": np.zeros(1, "u1") for i in range(5000)}, tmp_path / "x.bpk")
    with subprocess.Popen(
        [sys.executable, "-m", "bpk_lite", "inspect", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert b"" == process.stderr.read()


def test_the_module_is_the_command():
    """`python -m bpk_lite` where no script is on the path."""
    assert run("--version")[1] == bpk("--version").stdout
