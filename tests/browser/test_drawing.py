"""Mouse, touch and keyboard leave ink, and the answer follows the pen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SEVEN = ((0.3, 0.25), (0.7, 0.25), (0.45, 0.8))


def test_a_mouse_stroke_leaves_ink_and_an_answer(demo):
    """One stroke fills the pad, the preview and the bars."""
    demo.stroke(*SEVEN)
    demo.wait_for_answer()

    assert demo.ink() > 1000
    assert demo.preview_ink() > 5000
    assert sum(demo.shares()) == pytest.approx(100, abs=1.5)
    expect(demo.best_bar).to_have_count(1)
    expect(demo.page.locator("#spoken")).to_contain_text(demo.digit.inner_text())


def test_the_answer_changes_while_the_pen_is_down(demo):
    """The bars do not wait for the end of a stroke; what is spoken does."""
    spoken = demo.page.locator("#spoken").inner_text()

    demo.stroke((0.5, 0.2), (0.5, 0.5), release=False)
    demo.wait_for_answer()
    first = demo.shares()
    demo.stroke((0.5, 0.5), (0.5, 0.8), (0.8, 0.8), release=False)
    demo.wait_for_answer()

    assert sum(first) > 0
    assert first != demo.shares()
    assert demo.page.locator("#spoken").inner_text() == spoken
    demo.page.mouse.up()
    expect(demo.page.locator("#spoken")).not_to_have_text(spoken)


def test_a_click_leaves_a_dot(demo):
    """A stroke of one point is seen."""
    demo.stroke((0.5, 0.5))
    demo.wait_for_answer()

    assert demo.ink() > 200


def test_touch_draws_and_does_not_scroll(demo):
    """A finger on the pad draws, also where the page could scroll."""
    demo.page.set_viewport_size({"width": 390, "height": 500})
    touch = demo.context.new_cdp_session(demo.page)

    def dispatch(kind, *points):
        places = [dict(zip("xy", demo.at(*point), strict=True)) for point in points]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    dispatch("touchStart", (0.5, 0.9))
    for step in range(1, 9):
        dispatch("touchMove", (0.5, 0.9 - step / 10))
    dispatch("touchEnd")
    demo.wait_for_answer()

    assert demo.ink() > 1000
    assert demo.page.evaluate("scrollY") == 0


def test_the_keyboard_draws(demo):
    """Arrows move the pen, space sets it down and lifts it; moving a lifted pen leaves no ink."""
    demo.pad.focus()
    keyboard = demo.page.keyboard
    keyboard.press("ArrowDown")
    demo.wait_for_answer()
    assert demo.ink() == 0

    keyboard.press("Space")
    for _ in range(12):
        keyboard.press("ArrowDown")
    drawn = demo.ink()
    keyboard.press("Space")
    for _ in range(5):
        keyboard.press("ArrowRight")
    demo.wait_for_answer()

    assert drawn > 1000
    assert demo.ink() == drawn
    assert sum(demo.shares()) == pytest.approx(100, abs=1.5)
    expect(demo.page.locator("#pen")).to_have_text("Pen up")


def test_two_arrows_at_once_draw_a_diagonal(demo):
    """Each held arrow counts, so the pen goes down and to the right."""
    demo.pad.focus()
    keyboard = demo.page.keyboard
    keyboard.press("Space")
    keyboard.down("ArrowRight")
    for _ in range(6):
        keyboard.down("ArrowDown")
    keyboard.up("ArrowDown")
    keyboard.up("ArrowRight")
    keyboard.press("Space")

    left, top, right, bottom = demo.evaluate(
        """
        const ink = drawing.pixels(), xs = [], ys = [];
        ink.forEach((value, place) => {
          if (value > 127) xs.push(place % 280), ys.push(Math.floor(place / 280));
        });
        return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
        """
    )
    assert right - left > 50
    assert bottom - top > 50


def test_undo_takes_back_one_stroke_and_also_a_clear(demo):
    """Undo and Ctrl+Z step back through strokes, clearings and samples."""
    undo, clear = demo.page.locator("#undo"), demo.page.locator("#clear")
    demo.stroke((0.3, 0.2), (0.3, 0.8))
    one = demo.ink()
    demo.stroke((0.7, 0.2), (0.7, 0.8))
    two = demo.ink()
    clear.click()
    assert demo.ink() == 0
    expect(clear).to_be_disabled()

    undo.click()
    assert demo.ink() == two
    demo.page.keyboard.press("Control+z")
    assert demo.ink() == one
    undo.click()
    demo.wait_for_answer()
    assert demo.ink() == 0
    assert demo.shares() == [0.0] * 10


def test_clearing_brings_the_invitation_back(demo):
    """An empty pad shows no digit, no bar and the hint."""
    demo.stroke(*SEVEN)
    demo.wait_for_answer()
    expect(demo.page.locator("#hint")).to_be_hidden()

    demo.pad.focus()
    demo.page.keyboard.press("Delete")
    demo.wait_for_answer()

    expect(demo.digit).to_have_text("")
    expect(demo.best_bar).to_have_count(0)
    expect(demo.page.locator("#hint")).to_be_visible()
    assert demo.preview_ink() == 0


def test_many_changes_at_once_are_answered_once_or_twice(demo):
    """The latest drawing wins: nothing queues up behind a fast pen."""
    answers = demo.evaluate(
        """
        const digit = document.getElementById("digit");
        let answers = 0;
        const observer = new MutationObserver(() => { answers += 1; });
        observer.observe(digit, { attributes: true, attributeFilter: ["data-revision"] });
        drawing.begin(50, 50);
        for (let x = 50; x < 250; x += 1) drawing.extend([[x, x]]);
        drawing.end();
        while (Number(digit.dataset.revision) < drawing.revision) {
          await new Promise((resolve) => requestAnimationFrame(resolve));
        }
        await new Promise((resolve) => requestAnimationFrame(resolve));
        observer.disconnect();
        return answers;
        """
    )
    assert 1 <= answers <= 2
