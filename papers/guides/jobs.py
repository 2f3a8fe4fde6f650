"""The five guides to jobs: goals on new people, beside the script of an hour with and without a guessed margin.

Each story is made up, with one model that was fitted beforehand. On each draw a threshold is chosen on the selection
rows of the story and judged on a population of 200,000 people on whom no threshold was chosen.

by hand
    The threshold that is best on the selection rows among those that keep the goals there.
by hand, margin
    The same, with each bound made tighter by 0.02: the margin that one guesses.
counterpoise
    ``GoalClassifier`` with its defaults, as in the guide.

Rule, written before the run: ours holds all goals in at least 80 % of the draws of each story, and the guess does not
in all of them, or costs more.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise import GoalClassifier
from counterpoise.datasets import loans
from counterpoise.goals import InfeasibleGoals
from papers.arrays import AnyArray, FloatArray, IntArray
from papers.experiments import Blocks, Experiment
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

NAME = "jobs"
BY_HAND, GUESSED, OURS = METHODS = ("by hand", "by hand, margin 0.02", "counterpoise")
HELD, COST = "held", "cost"
GUESS = 0.02
FRAUDS, ILL = 0.03, 0.12  # of all rows
N_POPULATION = 200_000
_ALLOWED = 1e-12


class Part(NamedTuple):
    """A story, on one draw of its selection rows."""

    dataset: str
    seed: int
    experiment: str = NAME


class People(NamedTuple):
    """Scores and labels, with a group of each person and what the deployed model decides."""

    scores: FloatArray
    y: IntArray
    group: AnyArray
    deployed: IntArray


Rates = Mapping[str, float]


class Story(NamedTuple):
    """What a guide asks for: as goals, and as the slack of each goal in a table of rates."""

    draw: Callable[[int, int], People]
    n_rows: int
    goals: tuple[str, ...]
    objective: str
    slacks: Callable[[People, AnyArray], list[float]]  # one for each goal; at least 0 where it holds
    cost: Callable[[People, AnyArray], float]


def payments(n_rows: int, seed: int) -> People:
    """Return payments, of which 3 % are fraud."""
    rng = np.random.default_rng(seed)
    fraud = (rng.random(n_rows) < FRAUDS).astype(np.int64)
    return People(rng.normal(size=n_rows) + 2.3 * fraud, fraud, np.zeros(n_rows), fraud)


def patients(n_rows: int, seed: int) -> People:
    """Return people of three sites, of whom 12 % are ill; one laboratory measures lower values."""
    rng = np.random.default_rng(seed)
    site = rng.choice(["city", "coast", "hills"], n_rows, p=[0.5, 0.3, 0.2])
    ill = (rng.random(n_rows) < ILL).astype(np.int64)
    return People(rng.normal(size=n_rows) + 2.1 * ill - 0.3 * (site == "hills"), ill, site, ill)


def borrowers(n_rows: int, seed: int) -> People:
    """Return people who ask for a loan, by sex; the score is the true chance with an error."""
    people, default = loans(n_rows, random_state=seed)
    noise = np.random.default_rng(seed).normal(size=n_rows)
    score = -np.log(default / (1.0 - default)) + 0.7 * noise
    repaid, approved = ((people[name] == "no").to_numpy(dtype=np.int64) for name in ("default", "last_year"))
    return People(score, repaid, people["sex"].to_numpy(), approved)


def comments(n_rows: int, seed: int) -> People:
    """Return comments on three topics, of which a fifth is harmful."""
    rng = np.random.default_rng(seed)
    topic = rng.choice(3, n_rows)
    harmful = (rng.random(n_rows) < np.array([0.15, 0.2, 0.25])[topic]).astype(np.int64)
    return People(rng.normal(size=n_rows) + 2.6 * harmful, harmful, topic, harmful)


def applicants(n_rows: int, seed: int) -> People:
    """Return applicants, of whom women have less experience on paper."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n_rows, p=[0.4, 0.6])
    skill = rng.normal(size=n_rows)
    suited = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(1.5 - 2.0 * skill))).astype(np.int64)
    return People(2.0 * skill + rng.normal(size=n_rows) - 0.3 * (sex == "F"), suited, sex, suited)


def _share(where: AnyArray, of: AnyArray) -> float:
    return float(where[of].mean()) if of.any() else 1.0


def _by_group(rate: Callable[[AnyArray], float], people: People) -> list[float]:
    return [rate(people.group == name) for name in np.unique(people.group)]


def _recall(people: People, chosen: AnyArray, rows: AnyArray) -> float:
    return _share(chosen, (people.y == 1) & rows)


def _precision(people: People, chosen: AnyArray, rows: AnyArray) -> float:
    return _share(people.y == 1, chosen & rows)


def _false_positive_rate(people: People, chosen: AnyArray) -> float:
    return _share(chosen, people.y == 0)


def _ratio(people: People, chosen: AnyArray) -> float:
    rates = _by_group(lambda rows: float(chosen[rows].mean()), people)
    return min(rates) / max(*rates, _ALLOWED)


_ALL = slice(None)
STORIES = {
    "fraud": Story(
        payments, 10_000, ("positive_rate <= 0.04",), "false_negative_rate",
        lambda _people, chosen: [0.04 - float(chosen.mean())],
        lambda people, chosen: 1.0 - _share(chosen, people.y == 1),
    ),
    "screening": Story(
        patients, 8_000, ("recall >= 0.9", "every_group(recall, by=group) >= 0.85"), "false_positive_rate",
        lambda people, chosen: [
            _share(chosen, people.y == 1) - 0.9, min(_by_group(partial(_recall, people, chosen), people)) - 0.85
        ],
        _false_positive_rate,
    ),
    "lending": Story(
        borrowers, 5_000, ("precision >= 0.88", "min_ratio(selection_rate, by=group) >= 0.8", "churn <= 0.25"),
        "-1 * selection_rate",
        lambda people, chosen: [
            _share(people.y == 1, chosen) - 0.88, _ratio(people, chosen) - 0.8,
            0.25 - float((chosen != (people.deployed == 1)).mean()),
        ],
        lambda _people, chosen: 1.0 - float(chosen.mean()),
    ),
    "moderation": Story(
        comments, 6_000, ("every_group(precision, by=group) >= 0.8",), "false_negative_rate",
        lambda people, chosen: [min(_by_group(partial(_precision, people, chosen), people)) - 0.8],
        lambda people, chosen: 1.0 - _share(chosen, people.y == 1),
    ),
    "hiring": Story(
        applicants, 3_000, ("min_ratio(selection_rate, by=group) >= 0.8", "positive_rate <= 0.25"),
        "false_negative_rate",
        lambda people, chosen: [_ratio(people, chosen) - 0.8, 0.25 - float(chosen.mean())],
        lambda people, chosen: 1.0 - _share(chosen, people.y == 1),
    ),
}  # fmt: skip


@cache
def population(name: str) -> People:
    """Return the people on whom the rules of a story are judged."""
    return STORIES[name].draw(N_POPULATION, 1_000_000)


def by_hand(story: Story, people: People, margin: float) -> float:
    """Return the cheapest of 400 thresholds that keep the goals, tighter by a margin, or miss them least."""
    thresholds = np.quantile(people.scores, np.linspace(0.002, 0.998, 400))
    known = [
        (max(0.0, margin - min(story.slacks(people, chosen))), story.cost(people, chosen), threshold)
        for threshold in thresholds
        for chosen in [people.scores > threshold]
    ]
    return float(min(known)[2])


def ours(story: Story, people: People, seed: int) -> float:
    """Return the threshold of ``GoalClassifier`` with its defaults."""
    model = GoalClassifier(
        [people.scores], cv="prefit", goals=story.goals, objective=story.objective, random_state=seed
    )
    model.fit(people.scores[:, None], people.y, sensitive_features={"group": people.group}, baseline=people.deployed)
    return float(model.rules_[0].thresholds["all"])


def measure(part: Part) -> list[ResultRow]:
    """Return whether all goals hold on the population, and the cost there, of each method."""
    story, people = STORIES[part.dataset], population(part.dataset)
    sample = story.draw(story.n_rows, part.seed)
    found: dict[str, float] = {
        name: by_hand(story, sample, margin) for name, margin in ((BY_HAND, 0.0), (GUESSED, GUESS))
    }
    with suppress(InfeasibleGoals):
        found[OURS] = ours(story, sample, part.seed)
    rows = []
    for method, threshold in found.items():
        chosen = people.scores > threshold
        held = float(min(story.slacks(people, chosen)) >= -_ALLOWED)
        for quantity, value in ((HELD, held), (COST, story.cost(people, chosen))):
            rows.append(ResultRow(NAME, part.dataset, "", method, part.seed, None, quantity, "population", value))
    return rows


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return the draws of each story."""
    return [Part(name, seed) for name in datasets for seed in range(n_seeds)]


_COST_WORDS = {
    "fraud": "frauds missed", "screening": "false alarms", "lending": "not approved",
    "moderation": "harm left", "hiring": "suited, not invited",
}  # fmt: skip


def blocks(rows: ResultsTable) -> Blocks:
    """Return the share of the draws in which all goals hold, and the mean cost, by story and method."""
    lines: list[list[Any]] = []
    for name in STORIES:
        for method in METHODS:
            held, cost = (
                np.array([row.value for row in rows.where(dataset=name, method=method, quantity=quantity)])
                for quantity in (HELD, COST)
            )
            if held.size:
                words = f"{cost.mean():.3f} {_COST_WORDS[name]}"
                lines.append([name, method, str(held.size), f"{held.mean():.2f}", words])
    return {"held": markdown_table(["story", "method", "draws", "all goals hold", "mean cost"], lines, n_words=2)}


EXPERIMENT = Experiment(
    NAME, "the guides to jobs, beside the script of an hour", wanted, measure, blocks, tuple(STORIES), 50
)
