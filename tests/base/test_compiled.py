"""Kernels compile on first use, once for all threads, and where numba's cache can be written and where it cannot."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from numba import float64, int64

from counterpoise._base.compiled import Kernel, kernel, own_temporary_folder
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


@pytest.mark.slow
def test_kernels_are_kept_among_temporary_files_where_no_other_folder_can_be_written(tmp_path):
    """Of the user's folders none is one here; nor is the folder beside the source."""
    package, temporary = tmp_path / "package", tmp_path / "temporary"
    package.mkdir()
    temporary.mkdir()
    source = "from counterpoise._base.compiled import kernel\nfrom numba import int64\n\n\n@kernel(int64(int64))\n"
    (package / "own.py").write_text(f"{source}def next_one(x):\n    return x + 1\n")
    (package / "__pycache__").write_text("a file where a folder would be")
    code = "from own import next_one; print(next_one(2), next_one.dispatcher().stats.cache_hits.total())"
    where = {"PYTHONPATH": os.pathsep.join([str(package), *sys.path]), "HOME": os.devnull, "TMPDIR": str(temporary)}
    where |= {"XDG_CACHE_HOME": "/dev/null/cache"}
    if not hasattr(os, "getuid"):
        pytest.skip("each user has temporary files of their own")
    assert run(code, tmp_path, **where) == ("3 0", "")
    assert run(code, tmp_path, **where) == ("3 1", "")


def test_a_temporary_folder_of_others_is_refused(tmp_path, monkeypatch):
    if not hasattr(os, "getuid"):
        pytest.skip("each user has temporary files of their own")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = own_temporary_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="must be a folder that belongs to this user alone"):
        own_temporary_folder()
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="belongs to this user alone"):
        own_temporary_folder()


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
