"""Tables on the terminal: aligned whatever the text, and nothing acts that came from a file."""

from __future__ import annotations

import pytest

from bpk_lite.cli._terminal import Cell, bold, put, shown, table

pytestmark = pytest.mark.desktop


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("abc", 3),
        ("ключ", 4),
        ("漢字", 4),
        ("\uff41", 2),
        ("e\u0301", 1),
        ("שלום", 4),
        ("a漢", 3),
    ],
)
def test_a_cell_is_as_wide_as_the_terminal_draws_it(text, width):
    """Two columns for wide characters, none for marks that combine."""
    assert width == Cell(text).width


def test_columns_are_aligned(capsys):
    """Text to the left, numbers to the right, titles over both, wide characters counted."""
    table(("name", "size#"), [(shown("漢字"), "7"), (shown("weight"), "1,024")])
    assert (
        "\n"
        "name     size\n"
        "──────  ─────\n"
        "漢字        7\n"
        "weight  1,024\n"
    ) == capsys.readouterr().out  # fmt: skip


def test_a_table_without_rows_has_its_titles(capsys):
    """And no trailing blanks."""
    table(("name", "x"), [])
    assert "\nname  x\n────  ─\n" == capsys.readouterr().out


def test_text_from_files_is_shown_and_cut():
    """Control characters as escapes; 200 characters, and how many there were."""
    assert r"a\x1b[31m\n\u202e" == shown("a\x1b[31m\n\u202e")
    assert "x" * 200 == shown("x" * 200)
    assert "x" * 200 + "… (201 characters)" == shown("x" * 201)


def test_emphasis_needs_a_terminal(capsys):
    """A pipe gets the text alone."""
    put(bold("title"), "  ", shown("x"))
    assert "title  x\n" == capsys.readouterr().out
