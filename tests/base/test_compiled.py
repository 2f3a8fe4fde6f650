"""Kernels compile on first use, once for all threads, and where numba's cache can be written and where it cannot."""

import importlib
import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from numba import float64, int64

from counterpoise._base.compiled import Kernel, kernel, own_folder
from counterpoise._base.progress import watch_compilation
from counterpoise.learners._tree_kernels import class_sums

NO_SOURCE = (
    "from counterpoise._base.compiled import kernel; from numba import int64; "
    "print(kernel(int64(int64))(eval('lambda x: x + 1'))(2))"
)
EVERY_CLASS = """
import sys
import counterpoise
from counterpoise._base.compiled import KERNELS
for name in counterpoise.__all__:
    getattr(counterpoise, name)
print(len(KERNELS) > 30, any(one.is_compiled for one in KERNELS))
"""


def run(code, tmp_path, **environment):
    """Run code in a new process that finds no kernel compiled; return what it prints and what it warns of."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"NUMBA_CACHE_DIR": ""} | environment,
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_naming_every_class_compiles_nothing(tmp_path):
    printed, _ = run(EVERY_CLASS, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert printed == "True False"
    assert not list(tmp_path.rglob("*.nbi"))


@pytest.mark.slow
def test_a_kernel_compiles_where_nothing_can_be_cached_and_says_once_what_helps(tmp_path):
    """A function without a source file has no place in any cache."""
    printed, warned = run(NO_SOURCE, tmp_path)
    assert printed == "3"
    assert warned.count("counterpoise cannot store its compiled kernels") == 1
    assert "Set the environment variable NUMBA_CACHE_DIR to a folder that you can write to." in warned


CALLER = """
from counterpoise._base.compiled import kernel
from numba import int64
from parts import STEP, more

@kernel(int64(int64))
def next_one(x):
    return more(x) + STEP
"""
PARTS = """
from counterpoise._base.compiled import helper

STEP = {step}

@helper
def more(x):
    return x + {more}
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Return a function that installs both modules, calls the kernel, and returns its value and whether it was kept."""
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "user"))
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path / "user")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    installations = itertools.count()

    def install_and_call(*, step=1, more=0):
        folder = tmp_path / f"installation {next(installations)}"
        folder.mkdir()
        (folder / "own.py").write_text(CALLER)
        (folder / "parts.py").write_text(PARTS.format(step=step, more=more))
        with monkeypatch.context() as within:
            within.syspath_prepend(folder)
            for name in ("parts", "own"):
                within.setitem(sys.modules, name, importlib.import_module(name))
            next_one = sys.modules["own"].next_one
        for name in ("parts", "own"):
            sys.modules.pop(name, None)
        return next_one(2), bool(next_one.dispatcher().stats.cache_hits)

    return install_and_call


def test_installations_of_equal_sources_share_kernels_and_changed_parts_are_compiled_again(call, tmp_path, monkeypatch):
    assert call() == (3, False)
    assert call() == (3, True)
    assert call(step=2) == (4, False)
    assert call(more=5) == (8, False)
    assert call() == (3, True)
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "named"))
    assert call() == (3, False)
    assert list((tmp_path / "named").rglob("*.nbc"))


def test_kernels_are_kept_among_temporary_files_where_no_other_folder_can_be_written(call, tmp_path):
    (tmp_path / "user").write_text("a file where a folder would be")
    assert call() == (3, False)
    assert call() == (3, True)
    (kept,) = tmp_path.glob("counterpoise-kernels*")
    if hasattr(os, "getuid"):
        kept.chmod(0o777)  # where others could put code of theirs
        with pytest.warns(RuntimeWarning, match="must be a folder that belongs to this user alone"):
            assert call() == (3, False)


def test_a_folder_of_others_is_refused(tmp_path):
    if not hasattr(os, "getuid"):
        pytest.skip("each user has folders of their own")
    folder = own_folder(tmp_path / "kernels")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="must be a folder that belongs to this user alone"):
        own_folder(folder)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="belongs to this user alone"):
        own_folder(folder)


def test_a_damaged_kernel_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    compiled = []
    with watch_compilation(compiled.append):
        for damaged in ("*.nbi", "*.nbc", "nothing"):
            assert Kernel(total, float64(float64[::1]))(np.ones(2)) == 2.0
            for file in tmp_path.rglob(damaged):
                file.write_bytes(b"cut off")
        assert Kernel(total, float64(float64[::1]))(np.ones(2)) == 2.0
    assert compiled == ["total", None] * 3


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
        assert Kernel(total, float64(float64[::1]))(np.ones(2)) == 2.0
        assert Kernel(total, float64(float64[::1]))(np.ones(2)) == 2.0
    assert told == ["total", None]


@kernel(int64(int64))
def double(x):
    return 2 * x


@kernel(int64(int64))
def one_more_than_double(x):
    return double(x) + 1


def test_a_kernel_can_call_another(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    assert one_more_than_double(3) == 7


def test_read_only_arrays_and_others_share_one_kernel():
    frozen = np.ones(3)
    frozen.setflags(write=False)
    rows, codes, parts = np.arange(3, dtype=np.uint32), np.zeros(3, dtype=np.uint16), np.array([[0, 3, 0]])
    for weights in (frozen, frozen.copy()):
        sums = np.zeros((1, 2))
        class_sums(0, 1, parts, rows, weights, codes, sums)
        assert sums.tolist() == [[3.0, 0.0]]
    assert len(class_sums.dispatcher().signatures) == 1
