"""Attention and the transformer: masks, shared heads and what is stored (R92, R123, R124)."""

from typing import ClassVar

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import RecordError
from bpk_lite.records import ModuleRecord

RANDOM = np.random.default_rng(9)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype("f4")


def test_attention_to_itself_is_the_default():
    """Key and value default to the query."""
    mha = nn.MultiHeadAttention(4, 2)
    x = normal(2, 3, 4)
    np.testing.assert_array_equal(mha(x, x, x).context, mha(x).context)


def test_masked_key_weighs_nothing():
    """A masked key has no weight beside others; where all are masked, all weigh the same (R123)."""
    mha = nn.MultiHeadAttention(4, 2)
    mask = np.array([[False, True, False], [True, True, True]])
    weights = mha(normal(2, 3, 4), mask_pad=mask).weights
    assert 0 == weights[0, :, :, 1].max()
    np.testing.assert_allclose(np.full((2, 3, 3), 1 / 3), weights[1], rtol=1e-6)


def test_quiet_attention_may_ignore_everything():
    """With the quiet softmax the weights of masked keys are 0, not even (R121)."""
    mha = nn.MultiHeadAttention(4, 2, quiet_softmax=True)
    assert 0 == mha(normal(1, 3, 4), mask_pad=np.ones((1, 3), bool)).weights.max()


def test_cross_attention_masks_its_context():
    """What is masked in the context plays no role."""
    cross = nn.CrossAttention(4, 6, 4, 2, 3)
    query, context = normal(2, 3, 4), normal(2, 5, 6)
    mask = np.zeros((2, 5), bool)
    mask[:, 3:] = True
    np.testing.assert_allclose(
        cross(query, context[:, :3]), cross(query, context, mask_pad=mask), atol=1e-6
    )


def test_neighbouring_query_heads_share_a_key_head():
    """Each key head serves n_heads / n_heads_kv query heads in a row (R123)."""
    shared, own = nn.CrossAttention(4, 6, 4, 2, 3), nn.CrossAttention(4, 6, 4, 4, 3)
    own.query, own.output = shared.query, shared.output
    for name in ("key", "value"):
        few, many = getattr(shared, name), getattr(own, name)
        repeated = few.weight.value.reshape(6, 2, 3).repeat(2, axis=1)
        many.weight.value = np.ascontiguousarray(repeated.reshape(6, 12))
        many.bias.value = few.bias.value.reshape(2, 3).repeat(2, axis=0).reshape(12)
    query, context = normal(2, 3, 4), normal(2, 5, 6)
    np.testing.assert_allclose(own(query, context), shared(query, context), rtol=1e-5, atol=1e-6)


def test_masked_score_is_min_float():
    """Where a mask is true the score becomes `min_float`, by default -1e4 and not -inf (R123)."""
    assert (
        -1e4 == nn.MultiHeadAttention(2, 1).min_float == nn.CrossAttention(2, 2, 1, 1, 1).min_float
    )
    mha = nn.MultiHeadAttention(2, 1, min_float=3.0)
    mask = np.array([[True, True, True, True]])
    weights = mha(np.zeros((1, 4, 2), "f4"), mask_pad=mask, mask_attn=None).weights
    np.testing.assert_allclose(np.full((1, 1, 4, 4), 0.25), weights)
    mha.query.weight.value = np.zeros((2, 2), "f4")
    mha.query.bias.value = np.zeros(2, "f4")
    mask = np.array([[True, False, False, False]])
    weights = mha(normal(1, 4, 2), mask_pad=mask).weights
    np.testing.assert_allclose(np.exp(3) / (np.exp(3) + 3), weights[0, 0, 0, 0], rtol=1e-6)


def test_feed_forward_does_not_store_its_activation():
    """A PRelu in a feed-forward block is used, and neither saved nor loaded (R92)."""
    block = nn.PositionWiseFeedForward(2, 3, activation=nn.PRelu(alpha=0.0))
    assert 4 == len(block.into_record())
    other = nn.PositionWiseFeedForward(2, 3, activation=nn.Relu())
    other.load_record(block.into_record())
    x = normal(4, 2)
    np.testing.assert_array_equal(other(x), block(x))


class StoringFeedForward(nn.PositionWiseFeedForward):
    """The feed-forward block of Burn 0.23, whose activation is part of the record."""

    field_names: ClassVar = {}


def test_feed_forward_of_the_next_burn_stores_it():
    """Burn 0.23 stores the activation below its variant, last; a subclass says so (R112)."""
    layer = nn.TransformerEncoderLayer(2, 3, 1, activation=nn.PRelu())
    layer.pwff = StoringFeedForward(2, 3, activation=nn.PRelu())
    paths = [path for path in layer.named_params() if path.startswith("pwff.")]
    assert ["pwff.linear_outer.bias", "pwff.activation.PRelu.alpha"] == paths[-2:]
    assert "pwff.activation" not in str(list(nn.TransformerEncoder(2, 3, 1, 1).named_params()))


@pytest.mark.parametrize("activation", [nn.PRelu, lambda: nn.SwiGlu(3, 3)], ids=["PRelu", "SwiGlu"])
def test_stored_activations_keep_their_params(activation):
    """The slope, or the two projections, go through a file (R112)."""
    block, other = (StoringFeedForward(2, 3, activation=activation()) for _ in range(2))
    for param in block.named_params().values():
        param.value = normal(*param.shape)
    other.load_record(ModuleRecord.from_bytes(block.into_record().into_bytes()))
    x = normal(4, 2)
    np.testing.assert_array_equal(block(x), other(x))
    assert block.into_record() == other.into_record()


def test_older_feed_forward_records_load_into_the_next():
    """Four tensors are all there is with GELU; params of an activation must be allowed to miss (R112)."""
    older = nn.PositionWiseFeedForward(2, 3).into_record()
    assert 4 == len(StoringFeedForward(2, 3).load_record(older).loaded)
    block = StoringFeedForward(2, 3, activation=nn.PRelu())
    with pytest.raises(RecordError) as caught:
        block.load_record(older)
    assert ("activation.PRelu.alpha",) == caught.value.missing
    slope = block.activation.module.alpha.value.tolist()
    assert caught.value.missing == block.load_record(older, allow_partial=True).missing
    assert slope == block.activation.module.alpha.value.tolist()


def test_layers_follow_each_other():
    """An encoder or decoder of two layers is one layer after the other (R124)."""
    x, memory = normal(1, 3, 4), normal(1, 5, 4)
    encoder, decoder = nn.TransformerEncoder(4, 8, 2, 2), nn.TransformerDecoder(4, 8, 2, 2)
    first, second = encoder.layers
    np.testing.assert_array_equal(second(first(x)), encoder(x))
    first, second = decoder.layers
    np.testing.assert_array_equal(second(first(x, memory), memory), decoder(x, memory))
