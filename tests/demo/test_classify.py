"""The page's one call: ink in, probabilities and preview out."""

import numpy as np
import pytest
from mnist_demo import Net, classify, model, prepare


@pytest.fixture
def seven(on_canvas):
    """A canvas with a 7 of two strokes."""
    image = np.zeros((28, 28), np.uint8)
    image[5:7, 7:20] = 255
    for row in range(7, 24):
        column = 18 - (row - 7) // 2
        image[row, column : column + 2] = 255
    return on_canvas(image)


def test_a_seven_is_a_seven(seven):
    """A drawn 7 is classified, with probabilities, the preview and the time it took."""
    result = classify(seven.tobytes(), 420, 400)
    assert 7 == result.digit
    assert ((10,), np.dtype("f4")) == (result.probabilities.shape, result.probabilities.dtype)
    assert 1 == pytest.approx(result.probabilities.sum(), abs=1e-5)
    assert result.probabilities[7] > 0.8
    assert ((28, 28), np.dtype("u1")) == (result.preview.shape, result.preview.dtype)
    assert not result.empty
    assert 0 < result.milliseconds < 10_000


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, np.frombuffer])
def test_any_buffer_will_do(seven, wrap):
    """The canvas may be any buffer of bytes."""
    buffer = wrap(seven.tobytes(), np.uint8) if wrap is np.frombuffer else wrap(seven.tobytes())
    assert 7 == classify(buffer, 420, 400).digit


def test_canvas_is_read_row_by_row():
    """The buffer holds rows of `width` pixels: the preview is the prepared canvas."""
    canvas = np.zeros((60, 200), np.uint8)
    canvas[10:40, 50:60] = 255
    canvas[30:40, 50:150] = 255
    assert prepare(canvas).tolist() == classify(canvas.tobytes(), 200, 60).preview.tolist()


def test_empty_canvas_is_said_to_be_empty():
    """Without ink there is no digit, and no probability."""
    result = classify(bytes(300 * 200), 300, 200)
    assert (True, -1, 0.0) == (result.empty, result.digit, float(result.probabilities.sum()))


def test_wrong_size_is_named():
    """A buffer that does not have width times height bytes is refused."""
    with pytest.raises(ValueError, match="a canvas of 30x20 has 600 bytes, the buffer has 599"):
        classify(bytes(599), 30, 20)


def test_model_is_loaded_once():
    """`model` gives the same network at each call."""
    assert isinstance(model(), Net)
    assert model() is model()


def test_weights_are_views_of_the_pack():
    """Every weight is a read-only view of the embedded pack, in one piece of memory."""
    classify(np.full(100, 255, np.uint8), 10, 10)
    for path, param in model().named_params().items():
        assert param.materialised, path
        assert not param.value.flags.writeable, path
        assert not param.value.flags.owndata, path
    first, *_, last = (param.value for param in model().named_params().values())
    span = last.__array_interface__["data"][0] + last.nbytes - first.__array_interface__["data"][0]
    assert span == sum(param.value.nbytes for param in model().named_params().values())
