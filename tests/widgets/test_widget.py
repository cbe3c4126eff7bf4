"""The widget in Chromium, as someone uses it: by mouse, by keyboard, from Python."""

from __future__ import annotations

import re

import numpy as np
import pytest
from checkpoints import HOSTILE, network, pack
from playwright.sync_api import expect

pytestmark = [pytest.mark.desktop, pytest.mark.browser]


@pytest.fixture
def shown(show):
    """The transformer's pack in the widget."""
    return show(pack(network(), metadata={"task": "none"}, scalars={"step": 3}))


def rows(page):
    """Return the rows that are in the document, in its order: index on the screen, name."""
    return page.eval_on_selector_all(
        ".bpk-list .bpk-rows .bpk-row:not([hidden])",
        "(rows) => rows.map((row) => [Number(row.getAttribute('aria-rowindex')), row.querySelector('.bpk-name').textContent])",
    )


def names(page):
    return [name for _, name in rows(page)]


def table(page):
    page.get_by_role("button", name="Table").click()


def in_python(host, function):
    """Return what a function gives in the kernel, after the messages that are on their way."""
    return host.kernel.run(function)


def wait_for(host, page, function, expected):
    """Wait until a function gives what is expected in the kernel."""
    for _ in range(200):
        if in_python(host, function) == expected:
            return
        page.wait_for_timeout(10)
    assert expected == in_python(host, function)


def test_the_head_says_what_the_file_is(shown):
    """Number of tensors, elements, size and the share of each type, in text."""
    _, page = shown
    head = page.locator(".bpk-head").inner_text()
    elements = sum(np.size(array) for array in network().values())

    assert f"{len(network())} tensors" in head
    assert "burnpack" in head
    assert f"{elements:,} elements" == page.locator(".bpk-figures li").nth(1).get_attribute("title")
    assert re.search(r"F32 [\d.]+ % · 77 tensors", head.replace("\n", " "))


def test_the_tree_has_numbers_in_order_and_groups_with_totals(shown):
    """2 comes before 10; a group says how many tensors it has and their bytes."""
    _, page = shown
    layers = page.locator(".bpk-row", has_text="layers").first
    expect(layers.locator(".bpk-shape")).to_have_text("96 tensors")

    page.get_by_label("Filter", exact=True).fill("attention.q.bias")
    expect(page.locator(".bpk-found")).to_contain_text("12 of")
    assert ["layers", *(f"{n}.attention.q.bias" for n in range(12))] == names(page)


def test_a_group_of_one_takes_no_row_of_its_own(shown):
    """``embed.weight`` is one row, not a group with one tensor."""
    _, page = shown

    assert "embed.weight" in names(page)


def test_choosing_a_tensor_tells_python_and_shows_it(host, shown):
    """A click sets `selected`; facts, statistics, picture, values and Python follow."""
    widget, page = shown
    page.get_by_role("row", name="embed.weight").click()
    detail = page.get_by_role("region", name="Chosen tensor")

    expect(detail.get_by_role("heading", level=3)).to_have_text("embed.weight")
    expect(detail.locator("dl").first).to_contain_text("256 × 64")
    expect(detail).to_contain_text("Std. deviation")
    array = network()["embed.weight"]
    expect(detail.locator(".bpk-numbers td").nth(1)).to_have_text(format(float(array[0, 0]), ".6g"))
    wait_for(host, page, lambda: widget.selected, "embed.weight")
    assert "embed.weight" == in_python(host, lambda: widget.tensor().name)


def test_python_chooses_and_filters(host, shown):
    """Setting `selected` brings the row into view; setting `filter` filters."""
    widget, page = shown
    in_python(host, lambda: setattr(widget, "selected", "layers.11.mlp.up.weight"))
    chosen = page.locator(".bpk-list .bpk-row[aria-selected=true]")
    expect(chosen).to_contain_text("up.weight")
    expect(chosen).to_be_in_viewport()

    in_python(host, lambda: setattr(widget, "filter", "mask"))
    expect(page.get_by_label("Filter", exact=True)).to_have_value("mask")
    expect(page.locator(".bpk-found")).to_have_text(f"1 of {len(network())} tensors")


@pytest.mark.parametrize(
    ("kind", "text", "count"),
    [
        ("text", "ATTENTION.Q", 24),
        ("text", "layers.1.", 8),
        ("glob", "layers.?.mlp.*", 20),
        ("glob", "*.[qk].bias", 24),
        ("glob", "*.[!qk].bias", 12),
        ("glob", "up", 0),
        ("regex", r"layers\.1\d?\.mlp", 6),
        ("regex", r"^(?!layers)", 7),
    ],
)
def test_the_filter_finds(host, shown, kind, text, count):
    """Text anywhere and in any case, a glob that matches whole, a regular expression."""
    widget, page = shown
    page.get_by_label("How the filter matches").select_option(kind)
    page.get_by_label("Filter", exact=True).fill(text)

    expect(page.locator(".bpk-found")).to_have_text(f"{count} of {len(network())} tensors")
    wait_for(host, page, lambda: (widget.filter, widget.filter_kind), (text, kind))


def test_a_wrong_expression_is_explained_and_changes_nothing(shown):
    """The list stays as it was, and the message says why."""
    _, page = shown
    page.get_by_label("How the filter matches").select_option("regex")
    page.get_by_label("Filter", exact=True).fill("(")

    expect(page.locator(".bpk-list [role=alert]")).to_contain_text("the list is as it was")
    expect(page.locator(".bpk-found")).to_have_text(f"{len(network())} tensors")


@pytest.mark.parametrize("workers", ["blob:", "'none'"])
def test_an_expression_that_explodes_is_ended(host, show, workers):
    """With a worker and where the host forbids one, the page goes on; the next one is answered."""
    host.workers = workers
    try:
        tensors = {"a" * 40 + "!": np.ones(1, "f4"), "b": np.ones(1, "f4")}
        _, page = show(tensors, allowed="worker-src")  # the browser logs the refusal
        page.get_by_label("How the filter matches").select_option("regex")
        field = page.get_by_label("Filter", exact=True)
        field.fill("^(a+)+$")
        expect(page.locator(".bpk-list [role=alert]")).to_contain_text(
            "takes too long" if workers == "blob:" else "only simple expressions"
        )
        field.fill("^b")
        expect(page.locator(".bpk-found")).to_have_text("1 of 2 tensors")
    finally:
        host.workers = "blob:"


def test_the_table_sorts_by_every_column(shown):
    """A second click turns the order around; the header says so to a screen reader."""
    _, page = shown
    table(page)
    page.get_by_role("button", name="Size").click()
    header = page.get_by_role("columnheader", name="Size")
    expect(header).to_have_attribute("aria-sort", "descending")
    sizes = {name: np.asarray(array).nbytes for name, array in network().items()}
    assert max(sizes.values()) == sizes[names(page)[0]]

    page.get_by_role("button", name="Size").click()
    expect(header).to_have_attribute("aria-sort", "ascending")
    assert "nothing" == names(page)[0]

    page.get_by_role("button", name="Shape").click()
    assert "temperature" == names(page)[0]
    page.get_by_role("button", name="Type").click()
    assert "mask" == names(page)[0]


def test_the_rows_in_the_document_are_in_the_order_of_the_screen(shown):
    """However one scrolls: a screen reader reads the document."""
    _, page = shown
    table(page)
    for top in (0, 900, 300, 1700, 1200, 0, 2400, 100):
        page.evaluate(
            "(top) => { document.querySelector('.bpk-list .bpk-grid').scrollTop = top; }", top
        )
        page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        indices = [index for index, _ in rows(page)]
        assert sorted(set(indices)) == indices


def test_everything_in_the_tree_goes_by_keyboard(host, shown):
    """Arrows move, open and close; Enter chooses; Home, End and Page work; Tab leaves."""
    widget, page = shown
    page.get_by_label("Filter", exact=True).focus()
    for _ in range(4):
        page.keyboard.press("Tab")
    assert "row" == page.evaluate("document.activeElement.getAttribute('role')")

    def current():
        return page.evaluate("document.activeElement.querySelector('.bpk-name').textContent")

    assert "broken" == current()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "layers" == current()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(":focus")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowRight")
    assert "0" == current()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(":focus")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowLeft")
    assert "layers" == current()
    page.keyboard.press("End")
    assert "temperature" == current()
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    assert "broken" == current()
    page.keyboard.press("Enter")
    wait_for(host, page, lambda: widget.selected, "broken")
    assert "broken" == current()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.bpk-detail') !== null")


def test_the_focused_row_stays_when_it_is_scrolled_away(shown):
    """Focus is not lost, and the next arrow goes on from there."""
    _, page = shown
    table(page)
    page.get_by_role("row", name="broken").click()
    page.evaluate("document.querySelector('.bpk-list .bpk-grid').scrollTop = 2000")
    page.wait_for_timeout(100)
    assert "broken" == page.evaluate(
        "document.activeElement.querySelector('.bpk-name')?.textContent"
    )
    indices = [index for index, _ in rows(page)]
    assert sorted(set(indices)) == indices

    page.keyboard.press("ArrowDown")

    assert "embed.weight" == page.evaluate(
        "document.activeElement.querySelector('.bpk-name').textContent"
    )
    expect(page.locator(":focus")).to_be_in_viewport()


def test_plain_keys_stay_in_the_widget(shown):
    """Notebooks act on letters and arrows: those do not reach the host; Ctrl with a letter does."""
    _, page = shown
    page.evaluate(
        "window.heard = []; document.addEventListener('keydown', (event) => heard.push(event.key))"
    )
    page.get_by_label("Filter", exact=True).focus()
    for key in ("d", "d", "ArrowDown", "Control+s", "Escape"):
        page.keyboard.press(key)

    assert [key for key in page.evaluate("heard") if key != "Control"] == ["s", "Escape"]


def test_tabs_go_by_arrows(shown):
    """Metadata and scalars are in tables of their own."""
    _, page = shown
    page.get_by_role("tab", name="Tensors").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tabpanel", name="Metadata")).to_contain_text("task")
    page.keyboard.press("End")
    expect(page.get_by_role("tabpanel", name="Scalars")).to_contain_text("UInt")


def test_axes_are_picked_and_the_python_follows(shown):
    """Another plane, its values, and the line of Python that gives it."""
    _, page = shown
    page.get_by_label("Filter", exact=True).fill("patch")
    page.get_by_role("row", name="patch.weight").click()
    array = network()["patch.weight"]
    first = page.locator(".bpk-numbers td").nth(1)
    expect(first).to_have_text(format(float(array[0, 0, 0, 0]), ".6g"))

    page.get_by_label("Axis 0 at").fill("5")
    expect(first).to_have_text(format(float(array[5, 0, 0, 0]), ".6g"))
    page.get_by_label("Down: axis").select_option("1")
    page.get_by_label("Axis 2 at").fill("3")
    expect(first).to_have_text(format(float(array[5, 0, 3, 0]), ".6g"))
    page.get_by_label("Row", exact=True).fill("2")
    expect(page.locator(".bpk-numbers tbody th").first).to_have_text("0")  # all three rows fit
    expect(page.locator(".bpk-code code")).to_contain_text("values = tensor[5, :, 3, :]")


def test_the_table_of_values_goes_to_any_place(shown):
    """A row and a column by number; at the end of the tensor the table stays full."""
    _, page = shown
    page.get_by_role("row", name="embed.weight").click()
    array = network()["embed.weight"]
    corner = page.locator(".bpk-numbers tbody tr").first.locator("th, td")
    for row, column, shown_row, shown_column in ((100, 40, 100, 40), (255, 63, 248, 58)):
        page.get_by_label("Row", exact=True).fill(str(row))
        page.get_by_label("Column", exact=True).fill(str(column))
        expect(corner.first).to_have_text(str(shown_row))
        expect(corner.nth(1)).to_have_text(format(float(array[shown_row, shown_column]), ".6g"))


def test_the_picture_has_the_values_and_no_number_has_a_colour_of_its_own(shown):
    """A pixel for each element; NaN is told from all of them; the slider asks nobody."""
    _, page = shown
    page.get_by_role("row", name="broken").click()
    expect(page.locator(".bpk-canvas canvas")).to_have_attribute("width", "64")
    pixels = page.evaluate(
        "Array.from(document.querySelector('.bpk-canvas canvas').getContext('2d').getImageData(0, 0, 64, 64).data)"
    )
    colour = [tuple(pixels[at : at + 3]) for at in range(0, len(pixels), 4)]
    array = network()["broken"]
    nan = colour[3 * 64 + 5]
    assert 1 == colour.count(nan)
    darkest, lightest = np.nanargmin(np.where(np.isinf(array), np.nan, array)), 10 * 64 + 20
    assert colour[darkest][2] > colour[darkest][0]  # blue below zero
    assert colour[lightest][0] > colour[lightest][2]  # red above

    asked = page.evaluate("sent.length")
    page.get_by_label("Colour range").fill("10")
    expect(page.locator(".bpk-figure output")).to_have_text("10 % to 90 %")
    assert asked == page.evaluate("sent.length")


def test_a_click_on_the_picture_goes_to_the_values_there(shown):
    """The table moves to the place; the fields say where."""
    _, page = shown
    page.get_by_role("row", name="broken").click()
    expect(page.locator(".bpk-canvas canvas")).to_have_attribute("width", "64")
    canvas = page.locator(".bpk-canvas canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] * 20.5 / 64, "y": box["height"] * 10.5 / 64})

    expect(page.get_by_label("Row", exact=True)).to_have_value("10")
    expect(page.get_by_label("Column", exact=True)).to_have_value("20")
    expect(page.locator(".bpk-numbers td").nth(1)).to_have_text("∞")


def test_statistics_warn_of_what_is_no_number(shown):
    """NaN and infinities have a sign and words, not only a colour."""
    _, page = shown
    page.get_by_role("row", name="broken").click()
    bad = page.locator(".bpk-bad")

    expect(bad).to_have_count(2)
    expect(bad.first).to_contain_text("⚠ 1")


def test_statistics_of_a_large_tensor_wait_to_be_asked_and_can_be_cancelled(host, show):
    """The button says what it would read; Cancel ends the work in the kernel."""
    widget, page = show({"large": np.zeros(1 << 28, "u1")})
    page.get_by_role("row", name="large").click()
    start = page.get_by_role("button", name="Compute statistics")
    expect(page.locator(".bpk-statistics")).to_contain_text("reads 256 MiB")
    page.locator(".bpk-trouble:not([hidden])").wait_for()  # no picture of so long a row
    start.click()
    cancel = page.get_by_role("button", name="Cancel")
    expect(cancel).to_be_focused()
    expect(page.locator(".bpk-statistics progress")).not_to_have_js_property("value", 0)
    cancel.click()

    expect(page.locator(".bpk-statistics")).to_contain_text("Cancelled")
    expect(start).to_be_focused()
    wait_for(host, page, lambda: len(widget._session._tasks), 0)
    start.click()
    expect(page.locator(".bpk-statistics")).to_contain_text("268,435,456", timeout=60_000)


def test_the_snippet_is_copied(host, shown):
    """The button says that it did."""
    _, page = shown
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("row", name="embed.weight").click()
    page.get_by_role("button", name="Copy").click()
    expect(page.locator(".bpk-toast")).to_have_text("Copied")

    assert 'tensor = pack["embed.weight"]' in page.evaluate("navigator.clipboard.readText()")


def test_two_checkpoints_are_compared_by_words_and_signs(show):
    """States in text; values on demand; a row leads to its tensor."""
    other = network() | {"new": np.ones(2, "f4"), "steps": np.arange(13)}
    other["embed.weight"] = other["embed.weight"] + np.float32(0.25)
    del other["mask"]
    _, page = show(pack(network()), compare=pack(other))
    page.get_by_role("tab", name="Compare").click()
    grid = page.get_by_role("treegrid", name="Differences")
    expect(grid.get_by_role("row").nth(1)).to_contain_text("+ added")
    page.get_by_role("button", name="Compare values").click()
    expect(page.locator(".bpk-compare")).to_contain_text("Values compared")
    changed = grid.get_by_role("row", name="embed.weight")
    expect(changed).to_contain_text("≈ changed")
    expect(changed).to_contain_text("16,384 of 16,384 differ")
    expect(changed).to_contain_text("0.25")

    page.get_by_label("Show", exact=True).select_option("removed")
    expect(grid.get_by_role("row")).to_have_count(2)
    grid.get_by_role("row", name="mask").click()
    expect(page.get_by_role("heading", level=3)).to_have_text("mask")


def test_a_file_that_cannot_be_shown_says_why(host, shown, monkeypatch):
    """An error of the description is the widget's text (H3)."""
    widget, page = shown

    def fail(*_, **__):
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr("bpk_lite_widgets._session.summarize", fail)
    page.reload()
    # the comm was opened once; a reload has no state, so show another
    widget = host.show(page, type(widget), pack(network()))

    expect(page.get_by_role("alert")).to_contain_text("the disk is on fire")
    host.kernel.run(widget.close)


def test_an_empty_file_says_so(show):
    """No tensors, no metadata: what there is is said."""
    _, page = show(pack({}))

    expect(page.locator(".bpk-detail")).to_contain_text("There are no tensors in this file.")
    expect(page.locator(".bpk-head")).to_contain_text("0 tensors")


def test_hostile_names_and_values_are_inert(show):
    """Markup, scripts, direction marks and control characters are text: nothing ran."""
    tensors = {f"{name}{at}": np.ones((2, 2), "f4") for at, name in enumerate(HOSTILE)}
    text = {name: name for name in HOSTILE}
    _, page = show(pack(tensors, metadata=text, scalars=dict.fromkeys(HOSTILE, 1)))
    table(page)
    for name in list(tensors)[:9]:
        page.locator(".bpk-list .bpk-row").nth(1 + sorted(tensors).index(name)).click()
        page.locator(".bpk-numbers td").first.wait_for(state="attached")
    for tab in ("Metadata", "Scalars"):
        page.get_by_role("tab", name=tab).click()
    page.wait_for_timeout(100)

    assert page.evaluate("window.ran") is None
    assert 0 == page.locator(".bpk-inspector :is(img, script, iframe)").count()
    content = page.locator(".bpk-inspector").inner_text()
    assert not re.search("[\u200b\u202d\u202e\ufeff\x00\x1b]", content)
    assert "<img src=x onerror=window.ran=1>" in content
    assert r"\u{202e}evil" in content


def test_buffers_of_the_wrong_length_are_noticed(host, show, monkeypatch):
    """A column that arrives cut is an error in words, not a wrong picture (H2)."""
    from bpk_lite.inspect import Columns

    whole = Columns.buffers
    monkeypatch.setattr(
        Columns, "buffers", lambda self: [*whole(self)[:2], b"cut", *whole(self)[3:]]
    )
    _, page = show({"a": np.ones(3, "f4")})

    expect(page.get_by_role("alert")).to_contain_text("column 2 arrived with 3 bytes, expected 4")


@pytest.mark.parametrize("width", [320, 390, 700, 1400])
def test_nothing_is_wider_than_its_place(show, width):
    """No horizontal scrolling of the page at any width, with a tensor chosen."""
    _, page = show(
        pack(network(), metadata={"key": "x" * 400}),
        options={"viewport": {"width": width, "height": 800}},
        selected="patch.weight",
    )
    page.locator(".bpk-numbers td").first.wait_for(state="attached")

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for tab in ("Metadata", "Tensors"):
        page.get_by_role("tab", name=tab).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(show, axe, scheme):
    """In both schemes: tree, table, chosen tensor, comparison, metadata, wide and narrow."""
    other = network() | {"new": np.ones(2, "f4")}
    _, page = show(
        pack(network(), metadata={"task": "x", "config": '{"a": [1, 2]}'}, scalars={"step": 3}),
        compare=pack(other),
        options={"color_scheme": scheme},
        selected="broken",
    )
    page.locator(".bpk-numbers td").first.wait_for(state="attached")
    page.locator(".bpk-histogram svg").wait_for()
    page.locator("summary", has_text="Counts").click()
    assert [] == axe(page)
    table(page)
    page.evaluate("document.querySelector('.bpk-list .bpk-grid').scrollTop = 700")
    page.wait_for_timeout(100)
    assert [] == axe(page)
    for tab in ("Metadata", "Scalars", "Compare"):
        page.get_by_role("tab", name=tab).click()
        assert [] == axe(page)
    page.get_by_role("button", name="Compare values").click()
    page.get_by_role("tab", name="Tensors").click()
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("How the filter matches").select_option("regex")
    page.get_by_label("Filter", exact=True).fill("(")
    page.locator(".bpk-list [role=alert]").wait_for()
    assert [] == axe(page)


@pytest.mark.parametrize(
    ("mark", "scheme", "expected"),
    [
        ("document.body.dataset.jpThemeLight = 'false'", "light", "dark"),
        ("document.body.dataset.jpThemeLight = 'true'", "dark", "light"),
        ("document.body.classList.add('vscode-dark')", "light", "dark"),
        ("document.documentElement.setAttribute('theme', 'dark')", "light", "dark"),
        ("", "dark", "dark"),
    ],
)
def test_the_scheme_is_the_hosts(show, mark, scheme, expected):
    """What JupyterLab, VS Code or Colab say goes before what the system prefers."""
    _, page = show({"a": np.ones(1, "f4")}, options={"color_scheme": scheme})
    page.evaluate(f"() => {{ {mark} }}")
    ground = page.eval_on_selector(
        ".bpk-inspector", "(element) => getComputedStyle(element).backgroundColor"
    )
    lightness = sum(int(part) for part in re.findall(r"\d+", ground)[:3]) / 3

    assert (expected == "light") == (lightness > 128)


def test_a_large_integer_dimension_does_not_break_the_columns(show):
    """Shapes beyond 2^53, which only empty tensors have, are shown in full."""
    from tests.support import descriptor, pack_of

    _, page = show(pack_of({"a": descriptor(shape=(0, 2**63), offsets=(0, 0))}))

    expect(page.locator(".bpk-list .bpk-shape").nth(1)).to_have_text(f"0 × {2**63}")
