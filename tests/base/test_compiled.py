"""Kernels compile where numba's cache can be written, and where it cannot."""

import os
import subprocess
import sys

CODE = (
    "from counterpoise._base.compiled import kernel; from numba import int64; "
    "print(kernel([int64(int64)])(eval('lambda x: x + 1'))(2))"
)


def test_a_kernel_compiles_where_nothing_can_be_cached(tmp_path):
    """A function without a source file has no place in the cache, like one in a read-only installation."""
    environment = os.environ | {"NUMBA_CACHE_DIR": ""}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
    )
    assert done.stdout.strip() == "3"
