"""The networks and schedules of ``boosted_cvar_networks``."""

from typing import Any, NamedTuple

from counterpoise.learners import NetworkLearner
from counterpoise.learners.networks import WideResNet

BATCH = 128
_RATE = 0.1  # the first learning rate of Appendix B, and of all warm-ups


class Plan(NamedTuple):
    """A data set with a network and a schedule."""

    name: str
    dataset: str
    learner: str
    module: Any
    n_rounds: int
    warmup_epochs: int
    n_iterations: int
    decay_at: tuple[int, ...]
    learning_rate: float = 0.1
    warmup_decay_at: tuple[int, ...] = ()

    @property
    def schedule(self) -> str:
        """Return what else must be known to run it again."""
        warmup = f"warmup={self.warmup_epochs}"
        if self.warmup_decay_at:
            warmup += f" warmup_decay={_listed(self.warmup_decay_at)}"
        rate = "" if self.learning_rate == _RATE else f" rate={self.learning_rate:g}"
        return f"{warmup} iterations={self.n_iterations}{rate} decay={_listed(self.decay_at)}"

    def make_learner(self, device: str = "auto") -> NetworkLearner:
        """Return the base learner."""
        return NetworkLearner(
            self.module,
            n_iterations=self.n_iterations,
            warmup_epochs=self.warmup_epochs,
            warmup_learning_rate=_RATE,
            warmup_decay_at=self.warmup_decay_at,
            batch_size=BATCH,
            learning_rate=self.learning_rate,
            momentum=0.9,
            weight_decay=0.0005,
            decay_at=self.decay_at,
            augment="crop-flip",
            device=device,
        )


def _listed(places: tuple[int, ...]) -> str:
    return "/".join(map(str, places))


# Appendix B's schedules, and one with a warm-up long enough for 92 % on CIFAR-10
_PAPER_10 = Plan("cifar10", "cifar10", "WRN-28-1", WideResNet(28, 1), 100, 20, 5_000, (2_000, 4_000))
_PAPER_100 = Plan("cifar100", "cifar100", "WRN-28-10", WideResNet(28, 10), 50, 40, 10_000, (4_000, 8_000))
_LONG_10 = _PAPER_10._replace(
    name="cifar10-long",
    learner="WRN-28-1, long warm-up",
    warmup_epochs=130,
    warmup_decay_at=(80, 112),
    learning_rate=0.02,
)
PLANS = {plan.name: plan for plan in (_PAPER_10, _LONG_10, _PAPER_100)}
