"""What happens between the rounds over shards: the program inside goals, whether it is enough, a checkpoint."""

from typing import Any

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.boosting.checkpoint import CheckpointFolder, Seeds
from counterpoise.boosting.inside import Program
from counterpoise.boosting.rounds import Round, Standing
from counterpoise.boosting.run import Best, in_own_units, problem_of_patience
from counterpoise.boosting.stopping import stopping_of
from counterpoise.distributed.boosting import ShardHistory
from counterpoise.distributed.checkpoint import restored, run_of
from counterpoise.distributed.choosing import choose_over, evidence_of
from counterpoise.distributed.rows import cell_losses, shares_of
from counterpoise.persist.models import save
from counterpoise.rules.choosing import Problem
from counterpoise.rules.families import answers_of
from counterpoise.rules.goal_rows import find_positive
from counterpoise.theory.risks import Risk


class Watch:
    """Looks at each round, and says which is the last."""

    def __init__(
        self, model: Any, problem: Problem, history: ShardHistory, program: Program | None, *, is_random: bool
    ) -> None:
        self.model, self.history, self.program, self.is_random = model, history, program, is_random
        self.problem = problem_of_patience(problem)
        self.best = Best(np.inf, 0)
        self.saved: CheckpointFolder | None = None

    def resume(self, saved: CheckpointFolder | None, settings: dict[str, Any], seeds: Seeds, sample: Any) -> int:
        """Take the rounds that were saved, and return how many are left; settings, seeds and sample decide them."""
        self.saved, is_last = saved, False
        if saved is not None:
            run = run_of(settings, seeds, self.history.cells, sample)
            for said, done in restored(saved, run, self.history):
                self.note(said)
                self.best, is_last = Best(*done.best), done.is_last
        return 0 if is_last else self.history.n_planned - self.history.n_rounds

    def note(self, said: FloatArray) -> Standing | None:
        """Take note of a round that was fitted or restored, and return how the mixture stands inside goals."""
        if self.program is None:
            return None
        shares = shares_of(self.history.cells, [said])
        self.program.add(shares[:, 0], cell_losses(self.history.cells, shares)[:, 0])
        self.program.price(self.history)  # of which the next round then knows
        return self.program.standing

    def __call__(self, done: Round, _history: Any) -> bool:
        """Look at a round, and tell whether it is the last."""
        assert done.said is not None  # noqa: S101 - masses of cells
        done = done._replace(standing=self.note(done.said))
        is_last = self._has_stalled(done.number) or self._is_enough()
        if self.saved is not None:  # before the callbacks: one that raises or stops has its round on disk
            save(self.saved, done, self.best, is_last=is_last)
        asked = [bool(callback(done)) for callback in self.model.callbacks]  # all of them are called
        return any(asked) or is_last

    @property
    def is_over(self) -> bool:
        """Tell whether no model helps inside the goals."""
        return self.program is not None and self.program.is_over(is_random=self.is_random)

    def _has_stalled(self, number: int) -> bool:
        patience = stopping_of(self.model).patience
        if patience is None:
            return False
        size = 1.0 if self.program is None else self.program.size
        self.best = self.best.after(self._value(in_own_units(self.problem)) / size, number)
        return bool(number - self.best.number >= patience)

    def _is_enough(self) -> bool:
        target = getattr(self.model, "target", None)
        return self.is_over or (target is not None and 1 - self._value(self.problem) > target)

    def _value(self, problem: Problem) -> float:
        """Return the least risk of a mixture of the rounds so far."""
        if self.program is not None:
            return self.program.standing.value
        assert isinstance(problem.objective, Risk)  # noqa: S101 - patience and target are for one
        cells = self.history.cells
        answers = answers_of(cells, self.history.said, find_positive(self.model.classes_, self.model.pos_label))
        return choose_over(self.history.shards, evidence_of(cells, answers), problem)[1].value
