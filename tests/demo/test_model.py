"""The committed model: Burn's file layout, its accuracy, and what real Burn says of it."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from mnist_demo import Net, model, prepare

from bpk_lite.pack import DType, Reader, Writer

pytestmark = pytest.mark.desktop

WEB_DEMO = Path(__file__).parents[2] / "web-demo"
MODEL = WEB_DEMO / "mnist_demo" / "model.bpk"

# container.md section 15.3: name, shape, first and last byte, of the file that Burn ships
LAYOUT = [
    ("conv1.conv.weight", (64, 1, 3, 3), 0, 2304),
    ("conv1.conv.bias", (64,), 2304, 2560),
    ("conv1.norm.gamma", (64,), 2560, 2816),
    ("conv1.norm.beta", (64,), 2816, 3072),
    ("conv1.norm.running_mean", (64,), 3072, 3328),
    ("conv1.norm.running_var", (64,), 3328, 3584),
    ("conv2.conv.weight", (64, 64, 3, 3), 3584, 151040),
    ("conv2.conv.bias", (64,), 151040, 151296),
    ("conv2.norm.gamma", (64,), 151296, 151552),
    ("conv2.norm.beta", (64,), 151552, 151808),
    ("conv2.norm.running_mean", (64,), 151808, 152064),
    ("conv2.norm.running_var", (64,), 152064, 152320),
    ("fc1.weight", (1600, 128), 152320, 971520),
    ("fc1.bias", (128,), 971520, 972032),
    ("fc2.weight", (128, 128), 972032, 1037568),
    ("fc2.bias", (128,), 1037568, 1038080),
    ("fc3.weight", (128, 10), 1038080, 1043200),
    ("fc3.bias", (10,), 1043200, 1043240),
]


@pytest.fixture(scope="module")
def logits(mnist):
    """The network's logits for the 10 000 test images."""
    return np.concatenate([model()(mnist[0][n : n + 100]) for n in range(0, 10_000, 100)])


def test_layout_is_burns():
    """Names, shapes, dtype, write order and offsets are those of Burn's own file (C 15.3)."""
    pack = Reader.from_bytes(MODEL.read_bytes())
    ordered = pack.tensors(order="data")
    plan = Writer(ordered).plan()
    found = [(e.name, e.shape, e.start, e.end) for e in plan.entries]
    assert sorted(LAYOUT) == sorted(found)
    assert [row[0] for row in LAYOUT] == [tensor.name for tensor in ordered]
    assert {DType.F32} == {tensor.dtype for tensor in ordered}
    assert ({}, {}) == (dict(pack.metadata), dict(pack.scalars))
    assert MODEL.read_bytes() == bytes(plan.into_bytes())


def test_file_is_one_megabyte():
    """The file is as long as Burn's, but for a few bytes of param ids."""
    assert 1_044_776 == pytest.approx(MODEL.stat().st_size, abs=256)


def test_network_saves_the_same_file():
    """The network has Burn's params in Burn's order: saved again it gives the same bytes (R13)."""
    net, pack = Net(), Reader.from_bytes(MODEL.read_bytes())
    net.load_tensors(pack)
    for path, param in net.named_params().items():
        param.id = pack[path].param_id  # running states kept their own (R34)
    assert MODEL.read_bytes() == bytes(Writer(net.tensors()).plan().into_bytes())


def test_accuracy(mnist, logits):
    """The network names at least 99.0 % of the 10 000 test images right."""
    assert 0.99 <= np.mean(logits.argmax(axis=1) == mnist[1])


def test_batch_does_not_change_the_answer(mnist, logits):
    """An image alone gives the logits that it gives in a batch."""
    for place in (0, 4567, 9999):
        alone = model()(mnist[0][place : place + 1])[0]
        np.testing.assert_allclose(alone, logits[place], atol=1e-4)


@pytest.mark.oracle
def test_real_burn_agrees(oracle, mnist, logits, tmp_path):
    """Real Burn loads the file and gives the same logits within 1e-3 and the same predictions."""
    images = tmp_path / "images.bin"
    images.write_bytes(mnist[0].tobytes())
    burn = np.array(oracle("oracle-record", "mnist", str(MODEL), str(images))["logits"])
    assert (10_000, 10) == burn.shape
    assert 1e-3 > np.abs(burn - logits).max()
    assert burn.argmax(axis=1).tolist() == logits.argmax(axis=1).tolist()


def test_drawn_ten_times_as_large(mnist, on_canvas):
    """Test images drawn large anywhere on a canvas and prepared again keep 98 % accuracy."""
    random = np.random.default_rng(2)
    picked = random.choice(10_000, 1000, replace=False)
    places = random.integers(0, [120, 140], (1000, 2))
    images = [
        prepare(on_canvas(mnist[0][n], top, left))
        for n, (top, left) in zip(picked, places.tolist(), strict=True)
    ]
    answers = model()(np.stack(images)).argmax(axis=1)
    assert 0.98 <= np.mean(answers == mnist[1][picked])


def test_ids_follow_from_the_names():
    """Param ids are derived from the names, so a new training gives the same ones."""
    from train_mnist import param_id

    pack = Reader.from_bytes(MODEL.read_bytes())
    assert {name: param_id(name) for name in pack} == {n: t.param_id for n, t in pack.items()}
    assert 18 == len({tensor.param_id for tensor in pack.values()})


def test_conversion_gives_the_trained_network(mnist):
    """A PyTorch network converted by the training script gives PyTorch's logits."""
    import torch
    from train_mnist import burn_tensors, make_network

    torch.manual_seed(4)
    theirs = make_network()
    images = torch.tensor(mnist[0][:20])
    x = (images[:, None].float() / 255 - 0.1307) / 0.3081
    with torch.no_grad():
        theirs(x)  # moves the running states
        expected = theirs.eval()(x).numpy()
    ours = Net()
    ours.load_tensors({tensor.name: tensor for tensor in burn_tensors(theirs.state_dict())})
    np.testing.assert_allclose(ours(mnist[0][:20]), expected, atol=1e-5)


def test_one_convert_call_brings_the_trained_network_to_burn(mnist, logits, tmp_path):
    """From the network as PyTorch saves it, `bpk convert` gives the weights of the model's file."""
    import torch
    from train_mnist import make_network

    from bpk_lite.store import BurnpackStore

    places = {r"^conv1\.conv": "0", r"^conv1\.norm": "1", r"^conv2\.conv": "4", r"^conv2\.norm": "5",
              r"^fc1": "9", r"^fc2": "12", r"^fc3": "15"}  # fmt: skip
    theirs = make_network()
    BurnpackStore(MODEL, remap=places).apply_to(theirs)
    torch.save(theirs.state_dict(), tmp_path / "net.pt")
    maps = [
        f"--map=^{number}\\.={pattern[1:].replace(chr(92), '')}."
        for pattern, number in places.items()
    ]
    command = [
        sys.executable,
        "-m",
        "bpk_lite",
        "convert",
        tmp_path / "net.pt",
        tmp_path / "net.bpk",
    ]
    subprocess.run([*command, "--from-adapter", "pytorch", *maps], check=True, capture_output=True)
    net = Net()
    result = BurnpackStore(tmp_path / "net.bpk").apply_to(net)
    assert ("conv1.norm.num_batches_tracked", "conv2.norm.num_batches_tracked") == result.unused
    wanted = Reader.from_bytes(MODEL.read_bytes())
    assert all(tensor.buffer() == wanted[tensor.name].buffer() for tensor in net.tensors())
    np.testing.assert_array_equal(net(mnist[0][:100]), logits[:100])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The demo's wheel, built."""
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        out,
        WEB_DEMO,
    ]
    subprocess.run(command, check=True, capture_output=True)
    (made,) = out.glob("*.whl")
    return made


def test_wheel_carries_the_model(wheel):
    """The demo's wheel holds the package and the model, byte for byte, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        content = archive.read("mnist_demo/model.bpk")
    modules = {f"mnist_demo/{path.name}" for path in (WEB_DEMO / "mnist_demo").glob("*.py")}
    assert modules | {"mnist_demo/model.bpk"} == names
    assert MODEL.read_bytes() == content


def test_wheel_classifies_by_itself(wheel):
    """The package finds its model inside the wheel, without any file beside it."""
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1])\n"
        "import mnist_demo; result = mnist_demo.classify(bytes([255]) * 400, 20, 20)\n"
        "print(json.dumps([mnist_demo.__file__, result.digit]))"
    )
    command = [sys.executable, "-c", code, wheel]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    source, digit = json.loads(done.stdout)
    assert source.startswith(str(wheel))
    assert digit in range(10)
