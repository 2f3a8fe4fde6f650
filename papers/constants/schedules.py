"""The schedule of the networks on CIFAR-10, chosen by validation accuracy among those that were tried."""

from typing import NamedTuple

from counterpoise.runs.results import ResultsTable
from papers.markdown import markdown_table

N_NETWORKS = 100
STEPS_AN_EPOCH = 352  # 45,000 images in batches of 128
N_VALID = 5_000


class Schedule(NamedTuple):
    """How long a warm-up is, and how long each network is trained after it."""

    epochs: int
    iterations: int

    @property
    def steps(self) -> int:
        """Return the steps of a hundred networks."""
        return self.epochs * STEPS_AN_EPOCH + N_NETWORKS * self.iterations


IN_USE = Schedule(130, 5_000)
# In the order of ``schedules.csv``, where some are described by what they change in the one before.
TRIED = (
    *(Schedule(20, 5_000),) * 4,
    Schedule(20, 10_000),
    Schedule(40, 10_000),
    Schedule(30, 40_000),
    *(Schedule(60, 5_000),) * 3,
    Schedule(60, 10_000),
    *(Schedule(100, 5_000),) * 3,
    IN_USE,
)


def schedule_section(rows: ResultsTable) -> list[str]:
    """Return what the rule says, given the validation errors in the order in which schedules were tried."""
    valid = [(row.settings, 1.0 - row.value) for row in rows.where(quantity="error", split="validation")]
    tried = list(zip(valid, TRIED, strict=True))
    allowed = [(accuracy, text) for (text, accuracy), schedule in tried if schedule.steps <= IN_USE.steps]
    best, now = max(allowed), next(accuracy for (_, accuracy), schedule in tried if schedule == IN_USE)
    lines = [
        [text, f"{schedule.steps:,}", f"{accuracy:.4f}", "yes" if schedule.steps <= IN_USE.steps else "no"]
        for (text, accuracy), schedule in tried
    ]
    table = markdown_table(["warm-up and first model", "steps", "validation accuracy", "allowed"], lines)
    error = (best[0] * (1.0 - best[0]) / N_VALID) ** 0.5
    said = (
        f"The choice is **{best[1]}**, at {best[0]:.4f}; the tables have the last of the list, {best[0] - now:.4f} "
        f"below it, which is {(best[0] - now) * N_VALID:.0f} of\n{N_VALID:,} images. The standard error of an accuracy "
        f"is {error:.4f}: the two cannot be told apart, and the tables stand."
    )
    return ["## The long schedule on CIFAR-10", _ABOUT, table, said]


_ABOUT = f"""Validation accuracies of [one network each](../boosted_cvar/README.md) by the schedules that were tried,
test rows left aside. Allowed are those that take no more steps for {N_NETWORKS} networks than the one in use.
The accuracies were known when the rule was written; that the steps of all networks count was decided with it."""
