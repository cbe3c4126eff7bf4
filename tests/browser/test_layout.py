"""The page fits phones and desktops, in the light and in the dark."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("width", "height"), [(320, 568), (360, 740), (390, 844), (768, 1024), (1440, 900)]
)
def test_nothing_is_wider_than_the_screen(demo, width, height):
    """No horizontal scrolling, down to the narrowest phones, with the list of files open."""
    demo.page.set_viewport_size({"width": width, "height": height})
    demo.page.locator("#samples button").first.click()
    demo.wait_for_answer()
    demo.page.evaluate("document.getElementById('machinery').open = true")
    try:
        assert demo.page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        demo.page.evaluate("document.getElementById('machinery').open = false")


def test_on_a_phone_the_pad_and_the_digit_are_on_one_screen(demo):
    """One sees what is read without scrolling away from the pad."""
    demo.page.set_viewport_size({"width": 390, "height": 844})
    demo.page.locator("#samples button").first.click()
    demo.wait_for_answer()
    demo.page.evaluate("scrollTo(0, 0)")
    expect(demo.pad).to_be_in_viewport(ratio=1)
    expect(demo.digit).to_be_in_viewport(ratio=1)


def test_on_a_phone_what_is_touched_is_large_enough(demo):
    """Undo and clear are at least 44 pixels high."""
    demo.page.set_viewport_size({"width": 360, "height": 740})
    for name in ("#undo", "#clear"):
        box = demo.page.locator(name).bounding_box()
        assert box["height"] >= 44


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_schemes(demo, scheme):
    """Body and soft text have a contrast of at least 4.5 to 1 (WCAG AA) to their ground."""
    demo.page.emulate_media(color_scheme=scheme)
    ground = colour(demo, "body", "backgroundColor")
    for selector in ("h1", ".lede", "#summary", ".bars li"):
        assert contrast(ground, colour(demo, selector, "color")) >= 4.5


def test_ink_follows_the_scheme(demo):
    """What was drawn in the light is light in the dark."""
    demo.stroke((0.2, 0.5), (0.8, 0.5))
    assert redness_of_the_middle(demo) < 64

    demo.page.emulate_media(color_scheme="dark")
    demo.page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    assert redness_of_the_middle(demo) > 192


def redness_of_the_middle(demo):
    return demo.painted("pad")[4 * (14 * 28 + 14)]


def colour(demo, selector, name):
    text = demo.page.eval_on_selector(selector, f"(element) => getComputedStyle(element).{name}")
    return [int(value) for value in re.findall(r"\d+", text)[:3]]


def contrast(first, second):
    """Return the contrast of two sRGB colours as WCAG 2 defines it."""

    def luminance(rgb):
        linear = [
            value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
            for value in (channel / 255 for channel in rgb)
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)
