"""Shards on Dask: workers that die, clusters without workers, workers without the package, clients that are closed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from engines import cut, dask_client, dask_processes

from counterpoise._base.shards import total
from counterpoise.distributed.collections import RowCollections, partitions_of
from counterpoise.distributed.dask_shards import Calls, DaskShards, Parts

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

X = np.arange(20.0)
QUIET = {"dashboard_address": ":0", "silence_logs": 50}


def _sum(shard):
    return shard["x"].sum()


def _scale(shard, factor):
    shard["x"] = shard["x"] * factor


def _pid(_shard):
    return os.getpid()


def _die(shard, pid, path):
    if os.getpid() == pid and not Path(path).exists():
        Path(path).touch()
        os.kill(pid, signal.SIGKILL)
    return shard["x"].sum()


def _always_die(shard):
    if shard.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def _die_while_made(parts):
    path, values = parts
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"x": values}


def _stacked(parts):
    return {"x": np.concatenate(parts)}


class _Counter:
    count = 0

    def add(self, more):
        self.count += more
        return self.count


def _broken():
    raise OSError("the disk is gone")


@pytest.fixture(scope="module")
def processes():
    """A cluster of processes: one for each that is killed, as Dask may fail to replace one that dies as it starts."""
    with dask_processes(4) as client:
        yield client


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(processes, tmp_path):
    with DaskShards(cut(4, x=X), processes) as shards:
        shards.change("scale", _scale, 2.0)
        shards.change("more", _scale, 5.0)
        pids = shards.map(_pid)
        os.kill(pids[0], signal.SIGKILL)  # between two questions
        assert total(shards.map(_sum)) == 10 * X.sum()
        assert total(shards.map(_die, pids[1], str(tmp_path / "died"))) == 10 * X.sum()  # while it works
        shards.forget("more")
        os.kill(pids[2], signal.SIGKILL)
        shards.change("again", _scale, 7.0)
        assert shards.map(_sum)[2] == 14 * cut(4, x=X)[2]()["x"].sum()


@pytest.mark.slow
def test_what_is_left_is_done_once_by_shards_that_are_made_again_too(processes):
    with DaskShards(cut(2, x=X), processes) as shards:
        os.kill(shards.map(_pid)[1], signal.SIGKILL)
        shards.queue_change("left", _scale, 3.0)
        assert total(shards.map(_sum)) == 3 * X.sum()


@pytest.mark.slow
def test_workers_are_asked_through_the_scheduler_where_they_cannot_be_reached(processes):
    actor = processes.submit(_Counter, actor=True).result(timeout=120)  # else it waits for ever where no worker came
    calls = Calls(processes)
    assert [calls.ask(actor, "add", 1).result() for _ in range(2)] == [1, 2]  # not known to be near
    calls.reach(processes.nthreads())
    assert calls.ask(actor, "add", 1).result() == 3
    with pytest.raises(TypeError):
        calls.ask(actor, "add", "one").result()


@pytest.mark.slow
def test_a_worker_that_is_killed_while_it_makes_a_shard_is_replaced(processes, tmp_path):
    parts = [Parts(_die_while_made, [dask.delayed(str(tmp_path / "made")), dask.delayed(X)])]
    with DaskShards(parts, processes) as shards:
        assert total(shards.map(_sum)) == X.sum()


@pytest.mark.slow
def test_a_shard_that_always_ends_its_worker_is_given_up_with_a_sentence(processes):
    with DaskShards(cut(2, x=X), processes) as shards:
        with pytest.raises(
            RuntimeError, match=r"Shard 1 was lost 3 times while it ran _always_die, .*Use more workers"
        ):
            shards.map(_always_die)
        assert total(shards.map(_sum)) == X.sum()


def test_rows_that_a_worker_holds_stay_there():
    client = dask_client()
    workers = sorted(client.nthreads())
    held = [client.submit(np.full, 3, number, workers=[workers[number]], pure=False) for number in (1, 0, 1)]
    distributed.wait(held)
    parts = [dask.delayed(part) for part in held]
    with DaskShards(
        [Parts(_stacked, parts[:1]), Parts(_stacked, parts[1:2]), Parts(_stacked, parts[2:])], client
    ) as shards:
        assert shards.homes == [workers[1], workers[0], workers[1]]
        assert shards.map(_sum) == [3, 0, 3]


def test_partitions_of_a_frame_that_is_held_stay_where_they_are():
    client, workers = dask_client(), sorted(dask_client().nthreads())
    dd = pytest.importorskip("dask.dataframe")
    rows = pd.DataFrame({"a": X, "y": np.arange(20) % 2})
    places = [(slice(0, 10), workers[1]), (slice(10, 20), workers[0])]
    halves = [client.scatter(rows[place], workers=[worker]) for place, worker in places]
    frame = dd.from_delayed([dask.delayed(half) for half in halves], meta=rows[:0], verify_meta=False)
    frame = client.persist(frame)
    distributed.wait(frame)
    homes = [home for _, (home,) in sorted(client.who_has(frame).items(), key=str)]
    with DaskShards(list(map(Parts, *partitions_of(RowCollections(frame, "y"), 2))), client) as shards:
        assert shards.homes == homes


def test_rows_that_cannot_be_computed_say_why():
    with pytest.raises(OSError, match="the disk is gone") as error:
        DaskShards([Parts(_stacked, [dask.delayed(_broken)()])], dask_client())
    assert "the rows of shard 0" in error.value.__notes__[0]


def test_a_cluster_without_workers_says_so():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, **QUIET) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(RuntimeError, match=r"has no workers, and none joined within 0.1 seconds. Start some"),
    ):
        DaskShards(cut(1, x=X), client, patience=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "has"),
    [
        ('__version__ = "0.0.1"', "has counterpoise 0.0.1"),
        ('raise ModuleNotFoundError(name="counterpoise")', "does not have the package 'counterpoise'"),
    ],
)
def test_a_worker_without_the_package_or_with_another_is_named(package, has, tmp_path):
    (tmp_path / "counterpoise.py").write_text(package)
    places = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--nthreads=1", "--no-dashboard"]
    with distributed.LocalCluster(n_workers=0, **QUIET) as cluster, distributed.Client(cluster) as client:
        environment = os.environ | {"PYTHONPATH": places}
        worker = subprocess.Popen([*command, cluster.scheduler_address], env=environment, stderr=subprocess.DEVNULL)
        try:
            with pytest.raises(RuntimeError, match=rf"worker tcp://\S+ {has}; this process has .* pip install"):
                DaskShards(cut(1, x=X), client)
        finally:
            worker.kill()
            worker.wait()


def test_a_client_that_is_closed_or_none_is_refused():
    client = distributed.Client(dask_client().cluster, set_as_default=False)
    client.close()
    with pytest.raises(RuntimeError, match=r"The Dask client is closed: .* Make a new Client"):
        DaskShards(cut(1, x=X), client)
    with pytest.raises(TypeError, match=r"client must be a distributed.Client, or None .* got 'tcp://"):
        DaskShards(cut(1, x=X), "tcp://127.0.0.1:8786")
