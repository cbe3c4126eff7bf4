"""The training's parts: real MNIST, and its augmentation."""

import numpy as np
import pytest

from tests.support import desktop_module

pytestmark = pytest.mark.desktop
torch = desktop_module("torch")


def test_mnist_is_mnist(mnist):
    """The test split has 10 000 images of 28x28 whose first labels are known."""
    images, labels = mnist
    assert ((10_000, 28, 28), (10_000,)) == (images.shape, labels.shape)
    assert [7, 2, 1, 0, 4, 1, 4, 9, 5, 9] == labels[:10].tolist()
    assert 255 == images.max()
    assert not images[:, 0, 0].any()


def test_altered_file_is_refused(mnist, monkeypatch, tmp_path):
    """A file whose digest is not the known one is refused and named."""
    import mnist_data

    for name in mnist_data._SHA256:
        (tmp_path / name).write_bytes((mnist_data.CACHE / name).read_bytes())
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x01\x07")
    monkeypatch.setattr(mnist_data, "CACHE", tmp_path)
    with pytest.raises(RuntimeError, match="t10k-labels-idx1-ubyte: sha256"):
        mnist_data.load("test")


def test_augmentation_varies_and_repeats(mnist):
    """Augmented images differ from the originals but for one in five, and a seed repeats them."""
    from mnist_augment import augment

    images = torch.tensor(mnist[0][:500])[:, None].float() / 255
    first, again = (augment(images, torch.Generator().manual_seed(8)) for _ in range(2))
    assert torch.equal(first, again)
    assert images.shape == first.shape
    assert 0 <= first.min() <= first.max() <= 1
    kept = (first == images).flatten(1).all(dim=1).float().mean().item()
    assert 0.2 == pytest.approx(kept, abs=0.05)


def test_augmentation_keeps_digits_readable(mnist):
    """The embedded network still names most augmented images right."""
    from mnist_augment import augment
    from mnist_demo import model

    images = torch.tensor(mnist[0][:500])[:, None].float() / 255
    drawn = augment(images, torch.Generator().manual_seed(9))[:, 0].mul(255).round()
    answers = model()(drawn.numpy().astype(np.uint8)).argmax(axis=1)
    assert 0.96 < np.mean(answers == mnist[1][:500])
