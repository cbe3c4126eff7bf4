"""Torch optimizers into records and back (R43 to R61): against torch, our optimizers and Burn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import bpk_lite.torch as bt
from bpk_lite import nn as ours
from bpk_lite import optim
from bpk_lite.pack import DType, ProviderError, RecordError, Scalar
from bpk_lite.records import ModuleRecord, OptimizerRecord
from tests.torch import burn

# All hyperparameters are binary32 numbers, as Burn has them: only rounding is left to differ.
BETAS, EPS, DECAY = (0.875, 0.96875), 2.0**-17, 0.0625
PAIRS = {
    "sgd": (
        lambda p: torch.optim.SGD(p, lr=0.02, weight_decay=DECAY),
        lambda m: optim.Sgd(m, weight_decay=DECAY),
    ),
    "momentum": (
        lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.875, dampening=0.125),
        lambda m: optim.Sgd(m, momentum=optim.Momentum(0.875, 0.125)),
    ),
    "nesterov": (
        lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.875, nesterov=True),
        lambda m: optim.Sgd(m, momentum=optim.Momentum(0.875, 0.0, nesterov=True)),
    ),
    "adam": (
        lambda p: torch.optim.Adam(p, lr=0.02, betas=BETAS, eps=EPS, weight_decay=DECAY),
        lambda m: optim.Adam(m, beta_1=BETAS[0], beta_2=BETAS[1], epsilon=EPS, weight_decay=DECAY),
    ),
    "amsgrad": (
        lambda p: torch.optim.Adam(p, lr=0.02, betas=BETAS, eps=EPS, amsgrad=True),
        lambda m: optim.Adam(m, beta_1=BETAS[0], beta_2=BETAS[1], epsilon=EPS, amsgrad=True),
    ),
    "adamw": (
        lambda p: torch.optim.AdamW(p, lr=0.02, betas=BETAS, eps=EPS, weight_decay=DECAY),
        lambda m: optim.AdamW(m, beta_1=BETAS[0], beta_2=BETAS[1], epsilon=EPS, weight_decay=DECAY),
    ),
    "adagrad": (
        lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.01, eps=EPS, weight_decay=DECAY),
        lambda m: optim.AdaGrad(m, lr_decay=0.01, epsilon=EPS, weight_decay=DECAY),
    ),
    "adagrad_start": (
        lambda p: torch.optim.Adagrad(p, lr=0.05, eps=EPS, initial_accumulator_value=0.5),
        lambda m: optim.AdaGrad(m, epsilon=EPS),
    ),
    "rmsprop": (
        lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.96875, eps=EPS, momentum=0.5),
        lambda m: optim.RmsProp(m, alpha=0.96875, epsilon=EPS, momentum=0.5),
    ),
    "rmsprop_plain": (
        lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.96875, eps=EPS),
        lambda m: optim.RmsProp(m, alpha=0.96875, epsilon=EPS, momentum=0.0),
    ),
    "rmsprop_centered": (
        lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.96875, eps=EPS, centered=True),
        lambda m: optim.RmsProp(m, alpha=0.96875, epsilon=EPS, centered=True, momentum=0.0),
    ),
}
if hasattr(torch.optim, "Adafactor"):
    PAIRS["adafactor"] = (
        lambda p: torch.optim.Adafactor(p, lr=0.02, eps=(1e-30, 0.0009765625)),
        lambda m: optim.Adafactor(m, epsilon_2=0.0009765625),
    )
RATES = {"adagrad": 0.05, "adagrad_start": 0.05}
RATES |= dict.fromkeys(["rmsprop", "rmsprop_plain", "rmsprop_centered"], 0.01)


class Theirs(nn.Module):
    """A convolution, a norm without batch statistics, and linear layers that are not square."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 2)
        self.norm = nn.GroupNorm(1, 3)
        self.layers = nn.ModuleList([nn.Linear(12, 5), nn.Linear(5, 2)])
        self.double()

    def forward(self, x):
        x = torch.tanh(self.norm(self.conv(x))).flatten(1)
        return self.layers[1](torch.tanh(self.layers[0](x)))


class Ours(ours.Module):
    """The same in our modules, for names and layouts; torch does the arithmetic."""

    def __init__(self):
        self.conv = ours.Conv2d(1, 3, (2, 2))
        self.norm = ours.GroupNorm(1, 3)
        self.layers = [ours.Linear(12, 5), ours.Linear(5, 2)]


def data():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(6, 1, 3, 3, generator=generator, dtype=torch.float64)
    return x, torch.randn(6, 2, generator=generator, dtype=torch.float64)


def loss_of(module):
    x, y = data()
    return nn.functional.mse_loss(module(x), y)


def train(module, optimizer, steps):
    """Step in torch; return the losses before each step."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(module)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_ours(module, optimizer, steps, lr):
    """Step in numpy, with gradients by torch; return the losses before each step."""
    helper = Theirs()
    losses = []
    for _ in range(steps):
        bt.load_record(helper, module.into_record())
        helper.zero_grad()
        loss = loss_of(helper)
        loss.backward()
        grads = {
            piece.path: piece.view(piece.tensor.grad).numpy() for piece in bt.layout(helper).pieces
        }
        optimizer.step(grads, lr=lr)
        losses.append(loss.item())
    return losses


def records(module, optimizer):
    """Return both records of a torch training, by way of bytes."""
    return (
        ModuleRecord.from_bytes(bt.into_record(module).into_bytes()),
        OptimizerRecord.from_bytes(bt.optim_into_record(optimizer, module).into_bytes()),
    )


@pytest.mark.parametrize("name", PAIRS)
def test_training_goes_on_in_ours_and_back(name):
    """After 10 steps in torch, 25 in numpy and 25 in torch give torch's losses to 1e-6 (R60)."""
    make, make_ours = PAIRS[name]
    module = Theirs()
    optimizer = make(module.parameters())
    train(module, optimizer, 10)
    params, state = records(module, optimizer)
    expected = train(module, optimizer, 50)
    assert expected[-1] < expected[0]

    mine = Ours()
    mine.load_record(params)
    my_optimizer = make_ours(mine)
    my_optimizer.load_record(state)
    found = train_ours(mine, my_optimizer, 25, RATES.get(name, 0.02))
    np.testing.assert_allclose(found, expected[:25], rtol=1e-6)

    back = Theirs()
    bt.load_record(back, mine.into_record())
    back_optimizer = make(back.parameters())
    bt.load_optim_record(back_optimizer, my_optimizer.into_record(), back)
    np.testing.assert_allclose(train(back, back_optimizer, 25), expected[25:], rtol=1e-6)


@pytest.mark.parametrize("name", PAIRS)
def test_torch_goes_on_bit_for_bit(name):
    """State that goes through a record and back is the state: steps and records are the same."""
    make, _ = PAIRS[name]
    module, other = Theirs(), Theirs()
    optimizer = make(module.parameters())
    train(module, optimizer, 3)
    params, state = records(module, optimizer)
    expected = train(module, optimizer, 4)
    bt.load_record(other, params)
    again = make(other.parameters())
    train(other, again, 2)  # what is there is replaced (R54)
    bt.load_record(other, params)
    bt.load_optim_record(again, state, other)
    assert expected == train(other, again, 4)
    assert records(module, optimizer) == records(other, again)


@pytest.mark.parametrize("name", PAIRS)
def test_before_the_first_step(name):
    """An optimizer that has not stepped has no state in Burn, but for plain SGD's ranks (R47)."""
    make, _ = PAIRS[name]
    module = Theirs()
    optimizer = make(module.parameters())
    _, record = records(module, optimizer)
    has = {"sgd": 8, "adagrad_start": 16}.get(name, 0)
    assert has == len(record.scalars)
    train(module, optimizer, 2)
    bt.load_optim_record(optimizer, record, module)
    assert record == bt.optim_into_record(optimizer, module)
    train(module, optimizer, 1)


def fused():
    module = nn.ModuleDict({"rnn": nn.GRU(2, 3), "att": nn.MultiheadAttention(4, 2)})
    return module.double()


def step_fused(module, optimizer):
    x = torch.linspace(-1, 1, 24, dtype=torch.float64)
    optimizer.zero_grad()
    y = module["rnn"](x[:8].reshape(2, 2, 2))[0].square().sum()
    (y + module["att"](*[x.reshape(2, 3, 4)] * 3)[0].square().sum()).backward()
    optimizer.step()


def test_the_state_of_fused_weights_is_cut_like_the_weights():
    """Each gate has moments, a rank and a time of its own; they come together again (R91)."""
    module, other = fused(), fused()
    optimizer = torch.optim.Adam(module.parameters())
    step_fused(module, optimizer)
    params, state = records(module, optimizer)
    gate = params["rnn.reset_gate.input_transform.weight"].param_id
    moment = optimizer.state[module["rnn"].weight_ih_l0]["exp_avg"]
    assert moment[:3].T.tolist() == state.tensors[f"{gate}.momentum.moment_1"].numpy().tolist()
    assert Scalar("UInt", 2) == state.scalars[f"{gate}.__rank"]
    assert "rnn.reset_gate.input_transform.weight" == state.metadata[str(int(gate))]
    again = torch.optim.Adam(other.parameters())
    bt.load_record(other, params)
    bt.load_optim_record(again, state, other)
    step_fused(module, optimizer)
    step_fused(other, again)
    assert records(module, optimizer) == records(other, again)


def test_parts_that_have_been_stepped_apart_are_refused():
    """Burn counts the steps of each gate, torch those of the whole: unequal counts do not fit."""
    module = fused()
    optimizer = torch.optim.Adam(module.parameters())
    step_fused(module, optimizer)
    _, state = records(module, optimizer)
    gate = bt.into_record(module)["rnn.reset_gate.input_transform.weight"].param_id
    scalars = {**state.scalars, f"{gate}.momentum.time": Scalar("UInt", 9)}
    broken = OptimizerRecord(state.tensors.values(), scalars=scalars, metadata=state.metadata)
    with pytest.raises(RecordError, match=r"rnn.weight_ih_l0 .* stepped 1 and 9 times"):
        bt.load_optim_record(optimizer, broken, module)
    assert state == bt.optim_into_record(optimizer, module)


@pytest.mark.skipif(not hasattr(torch.optim, "Adafactor"), reason="torch 2.5 brought it")
def test_adafactor_cannot_take_fused_weights_apart():
    """Its means run over all rows; the error says so."""
    module = fused()
    optimizer = torch.optim.Adafactor(module.parameters())
    step_fused(module, optimizer)
    with pytest.raises(RecordError, match="cannot be taken apart"):
        bt.optim_into_record(optimizer, module)


@pytest.mark.skipif(not hasattr(torch.optim, "Adafactor"), reason="torch 2.5 brought it")
def test_adafactors_state_of_half_precision_is_f32():
    """As Burn has it (R51); torch gets its own dtype back."""
    module = nn.Linear(3, 2).bfloat16()
    optimizer = torch.optim.Adafactor(module.parameters())
    module(torch.ones(1, 3, dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    before = optimizer.state[module.weight]["row_var"].clone()
    record = bt.optim_into_record(optimizer, module)
    assert {DType.F32} == {tensor.dtype for tensor in record.tensors.values()}
    bt.load_optim_record(optimizer, record, module)
    assert torch.equal(before, optimizer.state[module.weight]["row_var"])
    assert torch.bfloat16 == optimizer.state[module.weight]["row_var"].dtype


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch 2.9 brought it")
def test_muon_has_the_velocity_of_burn_without_dampening():
    """Torch keeps (1 - momentum) times the velocity, transposed (R97)."""
    module = nn.Linear(3, 2, bias=False)
    optimizer = torch.optim.Muon(module.parameters(), momentum=0.75)
    grads = []
    for _ in range(2):
        optimizer.zero_grad()
        module(torch.randn(1, 3)).square().sum().backward()
        grads.append(module.weight.grad.T.numpy().copy())
        optimizer.step()
    record = bt.optim_into_record(optimizer, module)
    (velocity,) = record.tensors.values()
    expected = grads[0] * np.float32(0.75) + grads[1]  # no dampening
    np.testing.assert_allclose(velocity.numpy(), expected, rtol=1e-6)
    before = optimizer.state[module.weight]["momentum_buffer"].clone()
    bt.load_optim_record(optimizer, OptimizerRecord.from_bytes(record.into_bytes()), module)
    np.testing.assert_allclose(
        optimizer.state[module.weight]["momentum_buffer"].numpy(), before.numpy(), rtol=1e-6
    )


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_goes_on_in_ours_and_back(search):
    """Its vectors change order and layout (R57, R98): losses agree to 1e-6 over the next steps."""

    def closure(module, optimizer):
        def evaluate():
            optimizer.zero_grad()
            loss = loss_of(module)
            loss.backward()
            return loss.detach()

        return evaluate

    options = {"lr": 0.25, "max_iter": 4, "history_size": 5}
    module = Theirs()
    optimizer = torch.optim.LBFGS(module.parameters(), line_search_fn=search, **options)
    for _ in range(2):
        optimizer.step(closure(module, optimizer))
    params, state = records(module, optimizer)
    expected = [optimizer.step(closure(module, optimizer)).item() for _ in range(4)]

    def evaluate(mine):
        bt.load_record(helper, mine.into_record())
        helper.zero_grad()
        loss = loss_of(helper)
        loss.backward()
        return loss.item(), {
            piece.path: piece.view(piece.tensor.grad).numpy() for piece in bt.layout(helper).pieces
        }

    helper, mine = Theirs(), Ours()
    mine.load_record(params)
    my_optimizer = optim.Lbfgs(mine, line_search=search, **options)
    my_optimizer.load_record(state)
    found = []
    for _ in range(2):
        found.append(evaluate(mine)[0])
        my_optimizer.step(evaluate)
    np.testing.assert_allclose(found, expected[:2], rtol=1e-6)

    back = Theirs()
    bt.load_record(back, mine.into_record())
    again = torch.optim.LBFGS(back.parameters(), line_search_fn=search, **options)
    bt.load_optim_record(again, my_optimizer.into_record(), back)
    found = [again.step(closure(back, again)).item() for _ in range(2)]
    np.testing.assert_allclose(found, expected[2:], rtol=1e-6)


def test_a_fresh_lbfgs_is_burns_fresh_one():
    """No vectors, two lengths of 0, ``t`` 1.0 and ``g_iter`` 0 (R57); it loads into no state."""
    module = Theirs()
    optimizer = torch.optim.LBFGS(module.parameters())
    record = bt.optim_into_record(optimizer, module)
    assert {
        "history_s.len": Scalar("UInt", 0),
        "history_y.len": Scalar("UInt", 0),
        "t": Scalar("Float", 1.0),
        "g_iter": Scalar("UInt", 0),
    } == dict(record.scalars)
    assert 0 == len(record)
    optimizer.state[next(module.parameters())]["n_iter"] = 3
    bt.load_optim_record(optimizer, record, module)
    assert not optimizer.state


def test_a_history_longer_than_the_optimizers_is_refused():
    """Burn goes on with it; torch would fail at its next step, so the error says what to set."""

    def evaluate():
        module.zero_grad()
        loss = loss_of(module)
        loss.backward()
        return loss

    module = Theirs()
    optimizer = torch.optim.LBFGS(module.parameters(), lr=0.1, max_iter=5)
    optimizer.step(evaluate)
    record = bt.optim_into_record(optimizer, module)
    size = record.scalars["history_s.len"].value
    assert size > 1
    small = torch.optim.LBFGS(module.parameters(), history_size=size - 1)
    words = f"history_s has {size} vectors; history_size is {size - 1}"
    with pytest.raises(RecordError, match=words):
        bt.load_optim_record(small, record, module)
    assert not small.state
    exact = torch.optim.LBFGS(module.parameters(), history_size=size)
    bt.load_optim_record(exact, record, module)
    exact.step(evaluate)


def test_lbfgs_of_a_part_of_the_parameters_is_refused():
    """Burn's is of all float params of the module."""
    module = Theirs()
    optimizer = torch.optim.LBFGS(module.conv.parameters())
    with pytest.raises(RecordError, match="steps 2 of 8"):
        bt.optim_into_record(optimizer, module)


def test_lbfgs_refuses_another_optimizers_record():
    """Burn keeps its state without a word (R58); here it is an error, and nothing changes."""
    module = Theirs()
    adam = torch.optim.Adam(module.parameters())
    train(module, adam, 1)
    optimizer = torch.optim.LBFGS(module.parameters())
    with pytest.raises(RecordError, match=r"(?s)g_iter is missing.*belongs to no state of LBFGS"):
        bt.load_optim_record(optimizer, bt.optim_into_record(adam, module), module)
    with pytest.raises(RecordError, match="nothing was loaded"):
        bt.load_optim_record(adam, bt.optim_into_record(optimizer, module), module)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (torch.optim.NAdam, "no counterpart of NAdam; it shares with torch SGD, Adam"),
        (torch.optim.Adamax, "no counterpart of Adamax"),
        (lambda p: torch.optim.Adam(p, maximize=True), "maximize"),
    ],
    ids=["NAdam", "Adamax", "maximize"],
)
def test_what_burn_lacks_is_refused(make, message):
    """The error says what has no counterpart and what has, both ways."""
    module = Theirs()
    optimizer = make(module.parameters())
    with pytest.raises(RecordError, match=message):
        bt.optim_into_record(optimizer, module)
    with pytest.raises(RecordError, match=message):
        bt.load_optim_record(optimizer, OptimizerRecord(), module)


def test_a_parameter_of_another_module_is_refused():
    """An optimizer's parameters get ids and layouts from the module that is given."""
    module = Theirs()
    optimizer = torch.optim.Adam(module.parameters())
    with pytest.raises(RecordError, match=r"parameter 0 of group 0, \[3, 1, 2, 2\], is none of"):
        bt.optim_into_record(optimizer, Theirs())


def test_a_record_that_does_not_fit_changes_nothing_and_lists_everything():
    """Burn starts such params afresh without a word (R53, R54); here nothing is loaded."""
    module, other = Theirs(), Theirs()
    adam = torch.optim.Adam(module.parameters())
    train(module, adam, 2)
    params, state = records(module, adam)
    stranger = torch.optim.Adam(other.parameters())
    train(other, stranger, 1)
    before = records(other, stranger)
    with pytest.raises(RecordError, match="belongs to no state of Adam") as caught:
        bt.load_optim_record(stranger, state, other)
    assert "load the module's record first" in str(caught.value)
    assert before == records(other, stranger)
    bt.load_record(other, params)
    with pytest.raises(RecordError, match=r"lr_decay.time is missing"):
        bt.load_optim_record(torch.optim.Adagrad(other.parameters()), state, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, s: t.pop("momentum.moment_2"), r"momentum.moment_2 of conv.bias is missing"),
        (lambda t, s: s.update({"__rank": Scalar("UInt", 3)}), r"__rank is UInt\(3\), conv.bias"),
        (
            lambda t, s: s.update({"momentum.time": Scalar("Float", 1.0)}),
            r"momentum.time is Float\(1.0\), expected an unsigned",
        ),
        (
            lambda t, s: s.update({"momentum.time": Scalar("UInt", (1 << 24) + 1)}),
            "too often for torch",
        ),
    ],
    ids=["missing", "rank", "kind", "often"],
)
def test_a_broken_state_is_named(change, message):
    """What is missing, of another rank or kind, or beyond torch's count is told by path."""
    module = Theirs()
    adam = torch.optim.Adam(module.parameters())
    train(module, adam, 1)
    params, state = records(module, adam)
    prefix = f"{params['conv.bias'].param_id}."
    tensors = {n.removeprefix(prefix): t for n, t in state.tensors.items()}
    scalars = {n.removeprefix(prefix): s for n, s in state.scalars.items()}
    change(tensors, scalars)
    leaves = {"__rank", "momentum.time"}
    broken = OptimizerRecord(
        tensors.values(),
        scalars={prefix + n if n in leaves else n: s for n, s in scalars.items()},
        metadata=state.metadata,
    )
    with pytest.raises(RecordError, match=message):
        bt.load_optim_record(adam, broken, module)
    assert state == bt.optim_into_record(adam, module)


def test_a_frozen_parameter_and_one_without_gradient_have_no_state():
    """Only what has been stepped appears (R47); loading leaves the others without state."""
    module = Theirs()
    module.conv.weight.requires_grad_(False)
    adam = torch.optim.Adam(module.parameters())
    train(module, adam, 1)
    record = bt.optim_into_record(adam, module)
    assert "conv.weight" not in record.metadata.values()
    assert sorted(map(int, record.metadata)) == [int(key) for key in record.metadata]
    bt.load_optim_record(adam, record, module)
    assert module.conv.weight not in adam.state


def test_adagrad_starts_what_the_record_does_not_have():
    """Torch needs its state before the first step: no steps, and the initial sum."""
    module = Theirs()
    module.conv.weight.requires_grad_(False)
    adagrad = torch.optim.Adagrad(module.parameters(), initial_accumulator_value=0.25)
    record = OptimizerRecord()
    train(module, adagrad, 1)
    bt.load_optim_record(adagrad, record, module)
    for parameter in module.parameters():
        state = adagrad.state[parameter]
        assert (0, {0.25}) == (int(state["step"]), set(state["sum"].flatten().tolist()))


def test_max_moments_start_where_the_record_has_none():
    """A record without them loads into AMSGrad, which starts them at the next step (R52)."""
    module = Theirs()
    adam = torch.optim.Adam(module.parameters())
    train(module, adam, 1)
    record = bt.optim_into_record(adam, module)
    amsgrad = torch.optim.Adam(module.parameters(), amsgrad=True)
    bt.load_optim_record(amsgrad, record, module)
    train(module, amsgrad, 1)
    state = amsgrad.state[module.conv.weight]
    assert torch.equal(state["exp_avg_sq"], state["max_exp_avg_sq"])


def test_a_step_between_record_and_save_is_an_error():
    """The state is of one moment too; a copy outlives the step."""
    module = Theirs()
    adam = torch.optim.Adam(module.parameters())
    train(module, adam, 1)
    record = bt.optim_into_record(adam, module)
    copied = bt.optim_into_record(adam, module, copy=True)
    expected = record.into_bytes()
    train(module, adam, 1)
    with pytest.raises(ProviderError, match="copy=True"):
        record.into_bytes()
    assert expected == copied.into_bytes()


BURN = {
    "sgd": lambda p: torch.optim.SGD(p),
    "sgd_wd": lambda p: torch.optim.SGD(p, weight_decay=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, momentum=0.9, dampening=0.1),
    "sgd_momentum_wd": lambda p: torch.optim.SGD(p, momentum=0.8, weight_decay=0.1),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, eps=1e-5),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, eps=1e-5, amsgrad=True),
    "adam_wd": lambda p: torch.optim.Adam(p, eps=1e-8, weight_decay=0.1),
    "adam_f64": lambda p: torch.optim.Adam(p, eps=1e-5),
    "adam_conv": lambda p: torch.optim.Adam(p, eps=1e-5),
    "adamw": lambda p: torch.optim.AdamW(p, eps=1e-5, weight_decay=1e-4),
    "adamw_amsgrad": lambda p: torch.optim.AdamW(p, eps=1e-5, weight_decay=0.1, amsgrad=True),
    "adamw_nodecay": lambda p: torch.optim.AdamW(p, eps=1e-5, weight_decay=0),
    "adagrad": lambda p: torch.optim.Adagrad(p, eps=1e-5),
    "adagrad_decay": lambda p: torch.optim.Adagrad(p, eps=1e-5, lr_decay=0.1, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, eps=1e-5, momentum=0.9),
    "rmsprop_nomomentum": lambda p: torch.optim.RMSprop(p, eps=1e-5),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(
        p, eps=1e-5, momentum=0.9, centered=True, weight_decay=0.1
    ),
}
if hasattr(torch.optim, "Adafactor"):
    BURN |= dict.fromkeys(
        ["adafactor", "adafactor_conv"],
        lambda p: torch.optim.Adafactor(p, eps=(1e-30, 1e-3), weight_decay=0.0),
    )


def burn_module(run, step):
    """Return a torch module with Burn's params after a step, 0 for the initial ones."""
    rows = run["initial"] if step == 0 else run["steps"][step - 1]["params"]
    dtype = torch.float64 if rows[0]["dtype"] == "F64" else torch.float32
    shape = rows[0]["shape"]
    if len(shape) == 2:
        module = nn.Linear(*shape, bias=len(rows) > 1, dtype=dtype)
    else:
        module = nn.Conv2d(shape[1], shape[0], shape[2:], bias=len(rows) > 1, dtype=dtype)
    bt.load_record(module, burn.record(rows))
    return module


def burn_step(run, step, module, optimizer):
    """Step with Burn's gradients and rate."""
    row = run["steps"][step - 1]
    burn.grads_of(row, module)
    for group in optimizer.param_groups:
        group["lr"] = row["lr"]
    optimizer.step()


def agrees(rows, module, tolerance=2e-6):
    params = {piece.path: piece.view(piece.tensor) for piece in bt.layout(module).pieces}
    for row in rows:
        burn.close(row, params[row["path"]], tolerance)


@pytest.mark.parametrize("name", BURN)
def test_a_run_of_burn_goes_on_in_torch(name):
    """Burn's state after step 1, loaded into torch, gives Burn's params of steps 2 and 3 (R51)."""
    run = burn.RUNS[name]
    module = burn_module(run, 1)
    optimizer = BURN[name](module.parameters())
    record = OptimizerRecord.load(burn.RECORDS / f"optim_{name}_1.bpk")
    bt.load_optim_record(optimizer, record, module)
    assert record == bt.optim_into_record(optimizer, module)
    for step in (2, 3):
        burn_step(run, step, module, optimizer)
        agrees(run["steps"][step - 1]["params"], module)


@pytest.mark.oracle
@pytest.mark.parametrize("name", BURN)
def test_real_burn_goes_on_with_a_run_of_torch(name, oracle, tmp_path, monkeypatch):
    """Torch's state after step 1, loaded by Burn, gives the params of step 2 there."""
    run = burn.RUNS[name]
    if name == "adam_f64":
        monkeypatch.setenv("ORACLE_FLOAT", "f64")  # Burn loads state in its default type (R42)
    module = burn_module(run, 0)
    optimizer = BURN[name](module.parameters())
    burn_step(run, 1, module, optimizer)
    agrees(run["steps"][0]["params"], module)
    path = bt.optim_into_record(optimizer, module).save(tmp_path / "optim")
    answer = oracle("oracle-record", "load-optim", name, path, "--step", "--from", 1)
    assert "ok" == answer["outcome"]
    found = {row["path"]: row for row in answer["steps"][0]["params"]}
    for expected in run["steps"][1]["params"]:
        burn.close(expected, burn.values(found[expected["path"]]), 2e-6)
