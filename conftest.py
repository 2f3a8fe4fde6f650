"""What is collected: doctests of networks only where torch is."""

from importlib.util import find_spec

collect_ignore_glob: list[str] = []
if find_spec("torch") is None:
    collect_ignore_glob += ["src/counterpoise/learners/*network*.py", "docs/guide/networks.md"]
