"""What holds for every test: one thread for each process, and doctests of networks only where torch is."""

import os
from importlib.util import find_spec

# Several processes test at once: threads of linear algebra under each would only wait for one another.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

collect_ignore_glob: list[str] = []
if find_spec("torch") is None:
    collect_ignore_glob += ["src/counterpoise/learners/*network*.py", "docs/guide/networks.md"]
