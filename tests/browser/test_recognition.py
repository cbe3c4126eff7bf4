"""The page reads real digits."""

from __future__ import annotations

import pytest
from mnist_data import load

pytestmark = pytest.mark.browser

# Draws each image over the whole pad and waits for what the page then says.
CLASSIFY_EACH = """
  const digit = document.getElementById("digit");
  const answered = (revision) => new Promise((resolve) => {
    const look = () => {
      if (Number(digit.dataset.revision) < revision) return;
      observer.disconnect();
      resolve(digit.textContent);
    };
    const observer = new MutationObserver(look);
    observer.observe(digit, { attributes: true });
    look();
  });
  const answers = [];
  for (const image of argument) {
    drawing.show(image, 28);
    answers.push(await answered(drawing.revision));
  }
  return answers;
"""


def test_at_least_95_of_100_mnist_test_images_drawn_on_the_pad_are_read_right(demo, figure):
    """The first 100 images of the test set, drawn at the size of the pad."""
    images, labels = load("test")

    answers = demo.evaluate(CLASSIFY_EACH, images[:100].reshape(100, -1).tolist())

    right = sum(answer == str(label) for answer, label in zip(answers, labels, strict=False))
    figure(f"{right} of 100 MNIST test images drawn on the pad are read right")
    assert len(answers) == 100
    assert right >= 95


def test_every_sample_is_drawn_by_a_click_and_read_as_its_digit(demo):
    """The strip shows two samples of each digit, labelled for screen readers."""
    samples = demo.page.locator("#samples button")
    read = []
    for place in range(samples.count()):
        samples.nth(place).click()
        demo.wait_for_answer()
        read.append((samples.nth(place).get_attribute("aria-label"), demo.digit.inner_text()))

    assert [(f"Sample: a {digit}", str(digit)) for digit in [*range(10), *range(10)]] == read


def test_the_time_of_an_answer_is_shown(demo, figure):
    """The page tells how many milliseconds Python took."""
    demo.page.locator("#samples button").nth(3).click()
    demo.wait_for_answer()

    timing = demo.page.locator("#timing").inner_text()
    figure(f"one digit, in Python: {timing}")
    assert timing.startswith("answered in ")
    assert timing.endswith(" ms")
