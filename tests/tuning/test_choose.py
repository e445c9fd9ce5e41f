"""The winner of a search."""

import pytest

from gind.tuning.choose import Tried, rank


def trial(number: int, by_split: list[float], loss: float, state: str = "complete") -> Tried:
    return Tried(number, state, sum(by_split) / len(by_split), loss, tuple(by_split), False, {})


def winner(*trials: Tried) -> int:
    return rank(trials)[0].number


def test_of_trials_that_are_as_good_the_lowest_loss_wins() -> None:
    # 0.02 below on average, and now above, now below: the standard error of the difference is 0.05
    high, steady = trial(0, [0.90, 0.80, 0.90], 0.5), trial(1, [0.80, 0.84, 0.90], 0.4)
    assert winner(high, steady) == 1


def test_a_trial_that_is_worse_on_every_split_does_not_win() -> None:
    high, worse = trial(0, [0.90, 0.80, 0.91], 0.5), trial(1, [0.88, 0.78, 0.88], 0.1)
    assert winner(high, worse) == 0


@pytest.mark.parametrize("splits", [2, 3, 10])
def test_a_trial_that_is_ruined_on_one_split_does_not_win(splits: int) -> None:
    high, ruined = trial(0, [0.9] * splits, 0.5), trial(1, [0.9] * (splits - 1) + [0.1], 0.1)
    assert winner(high, ruined) == 0
    others = [trial(number, [0.9 - 0.001 * number] * splits, 1.0) for number in range(2, 6)]
    uneven = trial(1, [0.91] * (splits - 1) + [0.1], 0.1)  # the error is larger than the gap
    assert winner(high, uneven, *others) == 0


def test_one_split_is_decided_by_the_metric_then_the_loss() -> None:
    assert winner(trial(0, [0.80], 0.1), trial(1, [0.81], 0.9)) == 1
    assert winner(trial(0, [0.81], 0.9), trial(1, [0.81], 0.1)) == 1
    assert winner(trial(0, [0.81], 0.1), trial(1, [0.81], 0.1)) == 0


def test_equal_trials_are_equal_in_floating_point() -> None:
    values = [0.1, 0.2, 0.7]
    assert winner(trial(0, values, 0.5), trial(1, [value + 1e-16 for value in values], 0.6)) == 0


def test_those_as_good_follow_by_their_loss() -> None:
    trials = [trial(0, [0.90, 0.80, 0.90], 0.5), trial(1, [0.80, 0.84, 0.90], 0.4), trial(2, [0.80, 0.90, 0.84], 0.45)]
    assert [each.number for each in rank(trials)] == [1, 2, 0]


def test_the_others_follow_by_their_metric_and_only_complete_ones_count() -> None:
    trials = [
        trial(0, [0.5, 0.5], 0.1),
        trial(1, [0.9, 0.9], 0.3),
        trial(2, [0.7, 0.7], 0.2),
        trial(3, [0.99], 0.0, "pruned"),
    ]
    assert [each.number for each in rank(trials)] == [1, 2, 0]
    assert rank(trials[3:]) == []


@pytest.mark.parametrize("splits", [1, 4])
def test_splits_are_those_done(splits: int) -> None:
    assert trial(0, [0.5] * splits, 0.1).splits == splits
