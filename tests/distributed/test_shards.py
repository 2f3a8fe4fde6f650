"""The protocol: what an engine promises, whichever it is."""

import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from engines import EACH, cut, opened
from process_shards import ProcessShards

from counterpoise._base.shards import total


def _sum(shard, power=1):
    return (shard["x"] ** power).sum()


def _scale(shard, factor):
    shard["x"] = shard["x"] * factor
    return shard["x"].size


def _square(shard):
    shard["x"] = shard["x"] ** 2


def _left_and_asked(shards):
    shards.queue_change("refused", _refuse, "that")
    shards.map(_sum)


def _number(shard):
    return shard.number


def _refuse(_shard, what):
    raise ValueError(f"refused: {what}")


def _die_once(shard, path):
    if shard.number == 0 and not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return shard["x"].sum()


def _die(shard):
    if shard.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def _broken_source():
    raise ValueError("the file is not there")


X = np.arange(20.0)


@pytest.mark.parametrize("engine", EACH)
@pytest.mark.parametrize("n_shards", [1, 3])
def test_results_come_in_the_order_of_the_shards_and_changes_stay(engine, n_shards):
    with opened(engine, cut(n_shards, x=X)) as shards:
        assert shards.n_shards == n_shards
        assert shards.map(_number) == list(range(n_shards))
        assert total(shards.map(_sum)) == X.sum()
        assert sum(shards.change("scale", _scale, 3.0)) == 20
        assert total(shards.map(_sum, 2, light=True)) == (9 * X**2).sum()


@pytest.mark.parametrize("engine", EACH)
def test_an_error_in_a_shard_reaches_who_asked_and_the_shards_go_on(engine):
    with opened(engine, cut(2, x=X)) as shards:
        with pytest.raises(ValueError, match="refused: this"):
            shards.map(_refuse, "this")
        assert total(shards.map(_sum)) == X.sum()


@pytest.mark.parametrize("engine", EACH)
def test_what_is_left_is_done_in_order_before_what_is_asked_next(engine):
    with opened(engine, cut(3, x=X)) as shards:
        shards.queue_change("scale", _scale, 3.0)
        shards.queue_change("square", _square)
        shards.change("more", _scale, 2.0)
        assert total(shards.map(_sum)) == 2 * (9 * X**2).sum()
        with pytest.raises(ValueError, match="refused: that"):
            _left_and_asked(shards)


@pytest.mark.parametrize("engine", EACH)
def test_a_source_that_fails_says_so(engine):
    with pytest.raises(ValueError, match="the file is not there"), opened(engine, [_broken_source]):
        pass


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced_and_its_shards_made_again(tmp_path):
    with ProcessShards(cut(3, x=X), 2) as shards:
        shards.change("scale", _scale, 2.0)
        shards.change("more", _scale, 5.0)
        os.kill(shards.pids[0], signal.SIGKILL)
        assert total(shards.map(_sum)) == 10 * X.sum()
        assert total(shards.map(_die_once, str(tmp_path / "died"))) == 10 * X.sum()  # while it works


@pytest.mark.slow
def test_a_change_is_remembered_in_the_place_of_that_with_its_key():
    with ProcessShards(cut(1, x=X)) as shards:
        shards.change("one", _scale, 2.0)
        shards.change("two", _scale, 3.0)
        shards.forget("one")
        os.kill(shards.pids[0], signal.SIGKILL)
        assert total(shards.map(_sum)) == 3 * X.sum()


@pytest.mark.slow
def test_a_function_that_always_kills_its_process_is_given_up_with_a_sentence():
    with ProcessShards(cut(2, x=X)) as shards, pytest.raises(RuntimeError, match="ended 3 times while it ran _die, "):
        shards.map(_die)


def test_more_processes_than_shards_are_not_started():
    with ProcessShards([partial(dict, x=X)], 4) as shards:
        assert len(shards.pids) == 1
