"""Kernels compile on first use, once for all threads, and are kept in numba's cache where that can be written."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from numba import float64, int64, types

from counterpoise._base.compiled import Kernel, kernel
from counterpoise._base.progress import watch_compilation

NO_SOURCE = "from counterpoise._base.compiled import kernel; print(kernel('int64(int64)')(eval('lambda x: x + 1'))(2))"
EVERY_CLASS = """
import counterpoise
for name in counterpoise.__all__:
    getattr(counterpoise, name)
"""


def run(code, folder, **environment):
    """Run code in a new process, and return what it prints."""
    environment = os.environ | environment
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder, env=environment
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_naming_every_class_compiles_nothing(tmp_path):
    run(EVERY_CLASS, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert not list(tmp_path.rglob("*.nbi"))


@pytest.mark.slow
def test_a_kernel_compiles_where_nothing_can_be_cached(tmp_path):
    """A function without a source file has no place in any cache."""
    assert run(NO_SOURCE, tmp_path) == "3"


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


def test_threads_that_call_a_kernel_at_once_compile_it_once(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    summed, compiled, found = Kernel(total, float64(float64[::1])), [], []
    gate = threading.Barrier(4)

    def call():
        gate.wait()
        found.append(summed(np.ones(3)))

    with watch_compilation(compiled.append):
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [3.0] * 4
    assert compiled == ["total", None]


def test_a_kernel_from_the_cache_is_not_told_as_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    told = []
    with watch_compilation(told.append):
        assert Kernel(total, "float64(float64[::1])")(np.ones(2)) == 2.0
        assert Kernel(total, "float64(float64[::1])")(np.ones(2)) == 2.0
    assert told == ["total", None]
    assert list(tmp_path.rglob("*.nbc"))


@kernel(int64(int64))
def double(x):
    return 2 * x


@kernel(int64(int64))
def one_more_than_double(x):
    return double(x) + 1


def test_a_kernel_can_call_another(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    assert one_more_than_double(3) == 7


@kernel(float64(types.Array(float64, 1, "C", readonly=True)))
def largest(values):
    return values.max()


def test_read_only_arrays_and_others_share_one_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    frozen = np.ones(3)
    frozen.setflags(write=False)
    assert [largest(values) for values in (frozen, frozen.copy())] == [1.0, 1.0]
    assert len(largest.dispatcher().signatures) == 1
