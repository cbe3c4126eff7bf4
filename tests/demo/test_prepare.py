"""A drawing is brought into MNIST's form."""

import numpy as np
import pytest
from mnist_demo import prepare


def bar(high, wide, ink=255, size=(300, 300), at=(20, 30)):
    """Return a canvas with one filled rectangle."""
    canvas = np.zeros(size, np.uint8)
    canvas[at[0] : at[0] + high, at[1] : at[1] + wide] = ink
    return canvas


def extent(image):
    """Return the first and last inked row, then column."""
    rows, columns = np.nonzero(image.max(axis=1))[0], np.nonzero(image.max(axis=0))[0]
    return tuple(int(n) for n in (rows[0], rows[-1], columns[0], columns[-1]))


@pytest.mark.parametrize(
    ("high", "wide", "expected"),
    [
        (200, 200, (4, 23, 4, 23)),
        (200, 50, (4, 23, 12, 16)),
        (30, 120, (12, 16, 4, 23)),
        (5, 5, (4, 23, 4, 23)),
    ],
)
def test_drawing_is_fitted_and_centred(high, wide, expected):
    """A drawing of any size fills 20 pixels of 28 along its longer side, aspect kept, centred."""
    assert expected == extent(prepare(bar(high, wide)))


def test_result_is_an_mnist_image():
    """The result is uint8 of 28x28 whatever the canvas."""
    image = prepare(bar(40, 30, size=(70, 90)))
    assert ((28, 28), np.dtype("u1")) == (image.shape, image.dtype)


def test_place_on_the_canvas_does_not_matter():
    """A drawing gives the same image wherever it was drawn, the edges included."""
    images = [prepare(bar(90, 60, at=at)).tolist() for at in [(0, 0), (20, 30), (210, 240)]]
    assert images[0] == images[1] == images[2]


def lopsided(cut):
    """Return an upside-down L, 200 pixels large, with a stem that ends at column `cut`."""
    canvas = bar(200, 200)
    canvas[60:220, 30 + cut : 230] = 0
    return canvas


def test_centre_of_mass_is_in_the_middle():
    """What is heavier on one side moves to the other: the centre of mass is pixel 14."""
    image = prepare(lopsided(120)).astype(float)
    assert 14 == pytest.approx(image.sum(axis=1) @ np.arange(28) / image.sum(), abs=0.5)
    assert 14 == pytest.approx(image.sum(axis=0) @ np.arange(28) / image.sum(), abs=0.5)
    assert (5, 24, 7, 26) == extent(image)


def test_drawing_never_leaves_the_image():
    """A centre of mass near an edge moves the drawing no further than the image allows."""
    assert (8, 27) == extent(prepare(lopsided(30)))[2:]


@pytest.mark.parametrize("canvas", [np.zeros((9, 7), np.uint8), bar(20, 20, ink=7)])
def test_empty_canvas_gives_an_empty_image(canvas):
    """Without ink, or with a trace that no eye sees, nothing is enlarged."""
    assert not prepare(canvas).any()


def test_canvas_without_pixels_is_empty():
    """A canvas of no size gives an empty image."""
    assert not prepare(np.zeros((0, 0), np.uint8)).any()


def test_single_dot_is_a_blot():
    """One inked pixel fills the box, as any drawing does."""
    assert (4, 23, 4, 23) == extent(prepare(bar(1, 1)))


def test_faint_ink_is_strengthened():
    """Ink of a third of the strength gives the same image as full ink."""
    assert prepare(bar(120, 40)).tolist() == prepare(bar(120, 40, ink=85)).tolist()


def test_dust_does_not_widen_the_box():
    """Specks fainter than a tenth of the ink leave size and place alone."""
    canvas = bar(100, 100)
    canvas[250, 280] = 20
    assert (4, 23, 4, 23) == extent(prepare(canvas))


def test_thin_stroke_stays_visible():
    """The frame of a square, one pixel wide, still has a stroke of full ink."""
    canvas = bar(200, 200)
    canvas[21:219, 31:229] = 0
    image = prepare(canvas)
    assert 255 == image[4, 14]
    assert 0 == image[14, 14]


def test_mnist_image_comes_back():
    """An image in MNIST's form, drawn ten times as large, comes back as it was."""
    image = np.zeros((28, 28), np.uint8)
    image[4:24, 12:16] = 255
    image[4:8, 10:18] = 128
    image[20:24, 10:18] = 128
    canvas = np.kron(image, np.ones((10, 10), np.uint8))
    # The middle of the two rims lies a pixel off the middle of the box.
    assert image.tolist() == prepare(np.pad(canvas, 33)).tolist()
