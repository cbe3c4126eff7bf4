"""Strategies: the worked examples of records.md (R79 to R84)."""

from __future__ import annotations

import math

import pytest

from bpk_lite.desktop import Composed, Delete, KeepLastN, Metric, Save, default_strategy

S, D = Save(), Delete


def run(strategy, epochs, values=None):
    """Return the actions of epochs 1 to `epochs`; `values` is known up to the current one."""

    def known(_name, epoch, *, current=0):
        return None if values is None or epoch > len(values) else values[epoch - 1]

    return [strategy.actions(epoch, known) for epoch in range(1, epochs + 1)]


def test_keep_last_n():
    """Always Save, then one Delete, of the epoch N back if there is one (R80)."""
    assert [(S,), (S,), (S, D(1)), (S, D(2))] == run(KeepLastN(2), 4)


def test_keep_last_0_saves_and_deletes_the_current_epoch():
    """N = 0 keeps nothing (R80)."""
    assert [(S, D(1)), (S, D(2))] == run(KeepLastN(0), 2)
    with pytest.raises(ValueError, match="0 or more"):
        KeepLastN(-1)


def test_gaps_are_never_caught_up():
    """Exactly one epoch is deleted per call (R80)."""
    keep = KeepLastN(1)
    assert ((S,), (S, D(9))) == (keep.actions(1), keep.actions(10))


def test_the_best_metric_is_kept():
    """Delete the former best, then Save, when the current epoch is better (R81)."""
    values = [3.0, 2.0, 5.0, 1.0]
    assert [(S,), (D(1), S), (), (D(2), S)] == run(Metric("loss"), 4, values)


def test_the_highest_can_be_best():
    """Accuracy is best when it is high (R81)."""
    values = [0.1, 0.3, 0.2, 0.3]
    assert [(S,), (D(1), S), (), ()] == run(Metric("accuracy", lowest=False), 4, values)


def test_the_earliest_of_equals_stays():
    """Only what is strictly better wins (R81)."""
    assert [(S,), (), ()] == run(Metric("loss"), 3, [2.0, 2.0, 2.0])


def test_without_data_the_current_epoch_is_best():
    """So each epoch replaces the one before (R81)."""
    assert [(S,), (D(1), S), (D(2), S)] == run(Metric("loss"), 3)


def test_the_search_ends_at_the_first_epoch_without_data():
    """What comes behind a hole is not seen (R81)."""
    values = {1: 3.0, 3: 1.0}
    metric = Metric("loss")
    assert [(S,), (), ()] == [metric.actions(e, lambda _n, e: values.get(e)) for e in (1, 2, 3)]


def test_nan_is_never_best():
    """If every value is, the best is one past the last, and nothing is saved (R81)."""
    assert [(), (D(2),), (D(3),)] == run(Metric("loss"), 3, [math.nan] * 3)
    assert [(), (S,)] == run(Metric("loss"), 2, [math.nan, 1.0])


def test_values_of_later_epochs_do_not_count():
    """An interrupted run may have left them; Burn would see them."""
    metric = Metric("loss", values=lambda epoch: {1: 3.0, 2: 2.0, 3: 1.0}.get(epoch))
    assert ((S,), (D(1), S)) == (metric.actions(1), metric.actions(2))


def test_values_can_come_from_a_function_of_the_epoch():
    """Instead of what the asker knows."""
    metric = Metric(values=lambda epoch: float(-epoch))
    assert [(S,), (D(1), S)] == run(metric, 2, [1.0, 2.0])


def test_keep_last_1_composed_with_keep_last_2():
    """The worked example of R84."""
    assert [(S,), (S,), (S, D(1)), (S, D(2))] == run(Composed(KeepLastN(1), KeepLastN(2)), 4)


def test_an_epoch_is_deleted_when_all_have_flagged_it():
    """Saying nothing flags the current epoch; flags persist (R82)."""
    values = [1.0, 2.0, 3.0, 0.5, 4.0]
    # epoch 1 is best until 4, when the metric lets it go, as the other did at 2; 2 and 3 were
    # never best, so they go when they are no longer the last
    expected = [(S,), (S,), (S, D(2)), (S, D(1), D(3)), (S,)]
    found = run(Composed(KeepLastN(1), Metric("loss")), 5, values)
    assert [set(each) for each in expected] == [set(each) for each in found]
    assert all(each[0] == S for each in found)


def test_flags_are_cleared_with_the_epoch():
    """An epoch that comes again, in a run that was rewound, needs all flags anew (R82)."""
    composed = Composed(KeepLastN(1), KeepLastN(2))
    assert (S, D(1)) == run(composed, 3)[-1]
    assert [(S,), (S,), (S, D(1))] == run(composed, 3)


def test_only_epochs_that_got_a_delete_in_this_call_are_examined():
    """A flag by silence does not delete at once, even if it is the last one that was missing."""

    class Silent:
        def actions(self, epoch, values=None):
            return ()

    assert [()] == run(Composed(Silent()), 1)


def test_the_default_is_burns():
    """The last two epochs and the one with the lowest loss (R83)."""
    values = [1.0, 3.0, 2.0, 4.0, 5.0, 0.5, 6.0]
    kept = set()
    for epoch, actions in enumerate(run(default_strategy(), 7, values), 1):
        kept |= {epoch} if Save() in actions else set()
        kept -= {action.epoch for action in actions if isinstance(action, Delete)}
    assert {6, 7} == kept
    kept = set()
    for epoch, actions in enumerate(run(default_strategy(), 5, values), 1):
        kept |= {epoch} if Save() in actions else set()
        kept -= {action.epoch for action in actions if isinstance(action, Delete)}
    assert {1, 4, 5} == kept
