"""Settings shared by all tests."""

import importlib

from hypothesis import HealthCheck, settings

# No deadline: the first call of a kernel may compile it. The same examples in every run: CI must not flicker.
HOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("counterpoise", derandomize=True, max_examples=40, **HOW)
settings.register_profile("thorough", max_examples=1000, **HOW)  # pytest --hypothesis-profile=thorough searches on
settings.load_profile("counterpoise")


def pytest_configure(config):
    """Compile the kernels once before workers start: several writers of numba's cache have crashed."""
    if not hasattr(config, "workerinput"):
        kernels = (
            "solvers._kernels",
            "solvers._svm_kernels",
            "solvers._ball_kernels",
            "learners.trees",
            "learners.bernstein_stump",
            "boosting.robust_loss",
        )
        for module in kernels:
            importlib.import_module(f"counterpoise.{module}")
