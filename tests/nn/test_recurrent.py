"""Recurrent layers: directions, states, clips and the order of steps (R125)."""

import numpy as np
import pytest

from bpk_lite import nn

RANDOM = np.random.default_rng(9)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("build", [nn.Lstm, nn.Rnn, nn.BiLstm, nn.BiGru, nn.BiRnn])
def test_steps_may_come_first(build):
    """Without `batch_first` input and output are [steps, batch, …], the state is the same (R125)."""
    one, other = build(2, 3), build(2, 3, batch_first=False)
    other.load_record(one.into_record())
    x = normal(4, 5, 2)
    (out, state), (out2, state2) = one(x), other(x.transpose(1, 0, 2))
    np.testing.assert_allclose(out, out2.transpose(1, 0, 2), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state, state2, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("build", [nn.Lstm, nn.Rnn])
def test_reversed_is_the_reversed_sequence(build):
    """Going backwards gives each step's output at its own position (R125)."""
    one, other = build(2, 3), build(2, 3, reverse=True)
    other.load_record(one.into_record())
    x = normal(2, 5, 2)
    np.testing.assert_allclose(one(x[:, ::-1])[0][:, ::-1], other(x)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("build", [nn.Lstm, nn.Gru, nn.Rnn, nn.BiLstm, nn.BiGru, nn.BiRnn])
def test_state_carries_over(build):
    """A sequence in two parts, with the state handed over, is the whole sequence (R125)."""
    layer = build(2, 3)
    x = normal(2, 6, 2)
    if build is nn.Gru:
        first = layer(x[:, :4])
        parts, whole = layer(x[:, 4:], first[:, -1]), layer(x)[:, 4:]
    elif build in {nn.Lstm, nn.Rnn}:
        parts, whole = layer(x[:, 4:], layer(x[:, :4])[1])[0], layer(x)[0][:, 4:]
    else:  # only the forward direction goes on where the first part ended
        parts, whole = layer(x[:, 4:], layer(x[:, :4])[1])[0][..., :3], layer(x)[0][:, 4:, :3]
    np.testing.assert_allclose(whole, parts, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("build", [nn.Gru, nn.Rnn])
def test_clip_limits_every_step(build):
    """The hidden features stay within the clip."""
    nn.manual_seed(1)
    layer = build(2, 3, clip=0.1, hidden_activation=nn.Relu())
    out = layer(10 * normal(2, 6, 2))
    out = out if build is nn.Gru else out[0]
    assert np.float32(0.1) == np.abs(out).max()


def test_bidirectional_joins_and_stacks():
    """Outputs are joined in the last dimension, states stacked, forward first (R125)."""
    both = nn.BiRnn(2, 3)
    x = normal(2, 4, 2)
    out, state = both(x)
    ahead, back = both.ahead(x), both.reverse(x)
    np.testing.assert_array_equal(np.concatenate([ahead[0], back[0]], -1), out)
    np.testing.assert_array_equal(np.stack([ahead[1], back[1]]), state)
    assert "forward.gate.input_transform.weight" in both.named_params()
    assert "reverse.gate.input_transform.weight" in both.named_params()


def test_gates_activation_is_stored_last():
    """An activation with params adds its paths after the gates (R92)."""
    paths = list(nn.Gru(1, 1, gate_activation=nn.PRelu(), bias=False).named_params())
    assert "gate_activation.PRelu.alpha" == paths[-1]
    assert "new_gate.hidden_transform.weight" == paths[-2]


def test_gate_is_its_formula():
    """A gate adds the two linear layers (R125)."""
    gate = nn.GateController(2, 3, initializer=nn.init.Normal())
    x, h = normal(4, 2), normal(4, 3)
    expected = gate.input_transform(x) + gate.hidden_transform(h)
    np.testing.assert_array_equal(expected, gate(x, h))
