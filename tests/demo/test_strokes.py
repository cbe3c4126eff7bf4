"""Digits drawn with a round pen, as on the page, are recognised."""

from itertools import pairwise

import numpy as np
import pytest
from mnist_demo import classify

SIZE = 280


def arc(x, y, across, down, start, end):
    """Return points on an ellipse, angles in degrees clockwise from the right."""
    turns = np.radians(np.linspace(start, end, 24))
    return [(x + across * np.cos(t), y + down * np.sin(t)) for t in turns]


# Strokes in a square of 100, y downwards; some digits in the forms that people have for them.
DRAWINGS = {
    "0": (0, [arc(50, 50, 28, 42, -90, 270)]),
    "1 stroke": (1, [[(50, 8), (50, 92)]]),
    "1 slanted": (1, [[(60, 8), (42, 92)]]),
    "1 with a flag": (1, [[(36, 26), (54, 8), (54, 92)]]),
    "2": (2, [[*arc(50, 32, 26, 24, -160, 40), (22, 90), (80, 90)]]),
    "3": (3, [[*arc(48, 29, 24, 21, -150, 90), *arc(48, 71, 28, 21, -90, 150)]]),
    "4 open": (4, [[(30, 10), (22, 58), (78, 58)], [(66, 14), (62, 92)]]),
    "4 closed": (4, [[(60, 92), (60, 8), (20, 62), (82, 62)]]),
    "5": (5, [[(74, 10), (34, 10), (30, 46), *arc(48, 66, 27, 24, -110, 150)]]),
    "6": (6, [[(64, 8), (36, 40), *arc(50, 68, 24, 23, 180, 540)]]),
    "7": (7, [[(20, 12), (80, 12), (44, 92)]]),
    "7 crossed": (7, [[(20, 12), (80, 12), (44, 92)], [(38, 50), (76, 50)]]),
    "8": (8, [arc(50, 30, 21, 20, 90, 450), arc(50, 71, 26, 21, -90, 270)]),
    "9": (9, [[*arc(50, 32, 23, 23, 0, 360), (73, 32), (62, 92)]]),
}


def draw(strokes, pen, scale=2.0, left=40.0, top=40.0):
    """Return a canvas with the strokes, drawn by a round pen with soft edges."""
    rows, columns = np.mgrid[:SIZE, :SIZE] + 0.5
    nearest = np.full((SIZE, SIZE), np.inf)
    for stroke in strokes:
        points = np.array(stroke) * scale + (left, top)
        for (x0, y0), (x1, y1) in pairwise(points):
            length = max((x1 - x0) ** 2 + (y1 - y0) ** 2, 1e-9)
            along = ((columns - x0) * (x1 - x0) + (rows - y0) * (y1 - y0)) / length
            along = along.clip(0, 1)
            away = np.hypot(columns - x0 - along * (x1 - x0), rows - y0 - along * (y1 - y0))
            nearest = np.minimum(nearest, away)
    return (255 * (pen / 2 + 0.5 - nearest).clip(0, 1)).astype(np.uint8)


@pytest.mark.parametrize("pen", [4, 12, 20, 28])
@pytest.mark.parametrize("name", DRAWINGS)
def test_drawn_digit_is_recognised(name, pen):
    """A digit drawn in the usual size is recognised with any pen from fine to thick."""
    digit, strokes = DRAWINGS[name]
    assert digit == classify(draw(strokes, pen), SIZE, SIZE).digit


@pytest.mark.parametrize("name", DRAWINGS)
@pytest.mark.parametrize(("scale", "left", "top"), [(0.9, 170, 20), (2.6, 8, 8)])
def test_size_and_place_do_not_matter(name, scale, left, top):
    """A digit drawn small in a corner, or over the whole canvas, is recognised."""
    digit, strokes = DRAWINGS[name]
    assert digit == classify(draw(strokes, 14, scale, left, top), SIZE, SIZE).digit
