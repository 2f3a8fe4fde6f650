"""How far a fit is, and about how long it will take."""

import time
from typing import Any

from counterpoise._base.progress import RunProgress, Tell


class Pace:
    """Tells how far the rounds are; what a resumed fit restores does not count in the time left."""

    def __init__(self, tell: Tell, total: int = 1) -> None:
        self.tell, self.total = tell, total
        self.restored, self.started = 0, time.monotonic()

    def resume(self, n_rounds: int) -> None:
        """Begin after rounds that were restored."""
        self.restored = n_rounds

    def __call__(self, done: Any) -> None:
        self.step(done.number, f"round {done.number}, {done.told}")

    def trained(self, number: int, total: int, part: str) -> None:
        """Tell that a model of so many is trained."""
        self.total = total
        self.step(number, part)

    def step(self, number: int, part: str) -> None:
        """Tell that a part is done."""
        elapsed = time.monotonic() - self.started
        left = elapsed / max(number - self.restored, 1) * (self.total - number)
        self.tell(RunProgress(number, self.total, part, elapsed, left))
