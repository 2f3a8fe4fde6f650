"""Rates that count amounts of rows: their values, their text, wrong uses by their words, and audits."""

import numpy as np
import pytest

from counterpoise import audit
from counterpoise.goals import (
    Dataset,
    Table,
    bind,
    bind_objective,
    cost,
    forget_metric,
    macro,
    max_difference,
    parse_goal,
    precision,
    recall,
    register_metric,
    total,
)
from tests.tiers import slow, some_fast

RNG = np.random.default_rng(0)
N = 60
Y = RNG.integers(0, 2, N)
D = RNG.integers(0, 2, N)
AMOUNT = RNG.lognormal(5, 1, N)
PROFIT = np.where(Y == 1, AMOUNT, -AMOUNT / 2)
WEIGHT = RNG.choice([0.5, 1.0, 4.0], N)
SEX = RNG.choice(["F", "M"], N)
COLUMNS = {"amount": AMOUNT, "profit": PROFIT, "sex": SEX}
TEXTS = [
    "recall(value=amount) >= 0.8",
    "cost({0->1: 5, 1->0: amount}) <= 2.5",
    "cost(sex=F, {1->0: 'loan amount'}) <= 2.5",
    "total(value=profit) >= -100",
    "total(sex=F, age<=33, value='the profit') >= 100",
    "total(of=1, value=profit) >= 100",
    "max_difference(recall, value=amount, by=sex) <= 0.1",
    "every_class(recall, value=amount) >= 0.1",
    "macro(recall, sex=F, value=amount) >= 0.3",
    "precision(mail, value=amount) >= 0.3",
    "abs(recall(sex=F, value=amount) - recall(sex=M, value=amount)) <= 0.1",
    "confusion(of=1, value=amount, called=0) <= 0.1",
    "2 * total(value=profit) - total(value=amount) >= 3",
]


def table(weights=None):
    return Table(None, Y, COLUMNS, sample_weight=weights)


@pytest.mark.parametrize("text", TEXTS)
def test_a_goal_on_amounts_is_read_from_its_own_text(text):
    assert parse_goal(str(parse_goal(text))) == parse_goal(text)
    assert str(parse_goal(text)) == text


def test_python_and_text_make_the_same_goals():
    assert (recall(value="amount") >= 0.8) == parse_goal("recall(value=amount) >= 0.8")
    assert (cost("train", {(1, 0): "amount", (0, 1): 5}) <= 2.5) == parse_goal("cost({1->0: amount, 0->1: 5}) <= 2.5")
    assert (total("mail", sex="F", value="profit") >= 2) == parse_goal("total(mail, sex=F, value=profit) >= 2")
    phrase = max_difference(recall, by="sex", value="amount")
    assert (phrase <= 0.1) == parse_goal("max_difference(recall, by=sex, value=amount) <= 0.1")
    assert (macro(recall, value="amount") >= 0.3) == parse_goal("macro(recall, value=amount) >= 0.3")
    assert recall(Dataset("train").with_value("amount")) == recall(value="amount") != recall()


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("weights", [None, WEIGHT])
def test_values_are_sums_of_amounts_in_any_unit(weights, unit):
    w = np.ones(N) if weights is None else weights
    amount, profit = unit * AMOUNT, unit * PROFIT
    rows = Table(None, Y, {"amount": amount, "profit": profit, "sex": SEX}, sample_weight=weights)
    women, a = SEX == "F", w * amount
    assert recall(value="amount").value(D, rows) == pytest.approx((a * Y * D).sum() / (a * Y).sum())
    assert precision(value="amount").value(D, rows) == pytest.approx((a * Y * D).sum() / (a * D).sum())
    assert total(value="profit").value(D, rows) == pytest.approx((w * profit * D).sum())
    assert total(sex="F", value="profit").value(D, rows) == pytest.approx((w * profit * D)[women].sum())
    paid = (a * Y * (1 - D)).sum() + unit * (5 * w * (1 - Y) * D).sum()
    value = cost({(1, 0): "amount", (0, 1): 5 * unit}).value(D, rows)
    assert value == pytest.approx(paid / w.sum())
    chances = RNG.random(N)
    assert total(value="profit").expected_value(chances, rows) == pytest.approx((w * profit * chances).sum())


def test_bound_goals_have_the_amounts_as_weights():
    bound = bind("total(value=profit) >= 10", table())
    assert bound.weights["train"].toarray()[0] == pytest.approx(-PROFIT)
    assert bound.bounds == pytest.approx([-10])
    objective = bind_objective("-1 * total(value=profit)", table(WEIGHT))
    assert objective.values({"train": D}) == pytest.approx([-(WEIGHT * PROFIT * D).sum()])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("total >= 3", r"total needs a column of amounts, as in total\(value=profit\); got none"),
        ("recall(value=amunt) >= 0.3", r"Unknown column 'amunt' in dataset 'train'.*Did you mean 'amount'.*recall\("),
        (
            "recall(value=sex) >= 0.3",
            r"column 'sex' of dataset 'train' holds '[FM]' at row 0.*Needed by recall\(value=",
        ),
        (
            "error_rate(value=profit) >= 0.3",
            r"must not be negative; column 'profit' of dataset 'train' holds -.* at row",
        ),
        ("precision(value=profit) >= 0.3", r"must not be negative.*total\(value=...\).*Needed by true_positives"),
        ("recall(value=gaps) >= 0.3", r"column 'gaps' of dataset 'train' holds nothing at row 4.*Needed by recall"),
        (
            "cost({1->0: endless}) <= 0.3",
            r"column 'endless' of dataset 'train' holds infinity at row 7.*Needed by cost",
        ),
        ("total(value=texts) >= 1", r"column 'texts' of dataset 'train' holds 'much' at row 2.*Needed by total"),
        ("total(value=flags) >= 1", r"column 'flags' of dataset 'train' holds True at row 0.*Needed by total"),
        ("total(value=texts) >= 1", r"Convert the column to numbers, and leave such rows out or put in the amount"),
        ("recall(value=digits) >= 0.1", r"column 'digits' of dataset 'train' holds infinity at row 3"),
        ("total(value=days) >= 1", r"column 'days' of dataset 'train' holds datetime.date\(2026, 1, 1\) at row 0"),
        ("total(value=endless_sum) >= 1", r"too large to be added up: they must be at most 7e\+305.*a larger unit"),
        ("cost({1->0: endless_sum}) <= 1", r"column 'endless_sum' of dataset 'train' are too large.*Needed by cost"),
        ("recall(value=zeros) >= 0.3", r"nothing to take a rate of: The amounts in column 'zeros' add up to 0"),
        ("cost({1->0: 3}, value=amount) <= 1", r"cost names its amounts in its costs.*got value=amount"),
        ("recall(value=amount, value=profit) >= 0.1", r"one column of amounts; got value=profit beside value=amount"),
        (
            "recall(value<=3) >= 0.1",
            r"value is a word of the language of goals.*column of amounts that rows count with",
        ),
        ("cost({1->0: -}) <= 1", r"expected a number, or the name of a column of amounts"),
        ("recall(value=) >= 1", r"expected a value"),
    ],
)
def test_wrong_uses_in_texts_are_refused_in_a_sentence(text, words):
    gaps, endless, texts = AMOUNT.copy(), AMOUNT.copy(), AMOUNT.astype(object)
    gaps[4], endless[7], texts[2], digits = np.nan, np.inf, "much", AMOUNT.astype(object)
    digits[3] = 10**400
    more = {"gaps": gaps, "endless": endless, "texts": texts, "flags": np.ones(N, bool), "zeros": np.zeros(N)}
    more |= {"digits": digits, "days": np.full(N, "2026-01-01", "datetime64[D]"), "endless_sum": np.full(N, 1e305)}
    with pytest.raises(ValueError, match=words):
        parse_goal(text).evaluate(D, Table(None, Y, COLUMNS | more))


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: recall(value=3), "value must be the name of a column of amounts, as in recall.value=amount.; got 3"),
        (lambda: recall(value=AMOUNT), "Pass the amounts themselves as a column of sensitive_features, X or the Table"),
        (lambda: cost({(1, 0): [3]}), "A cost must be a number, or the name of a column of amounts"),
        (lambda: Dataset().where(value="amount"), "the column of amounts that rows count with"),
        (total, "total needs a column of amounts"),
        (lambda: Table(None, Y, largest_value=-1), "largest_value"),
        (lambda: Table(None, Y, largest_value={"amount": np.inf}), "largest_value of 'amount'"),
        (lambda: register_metric(lambda rows: recall(rows.with_value("a")), name="mine"), "must not name amounts"),
        (lambda: audit(TEXTS[0], D, table()), "needs largest_value, the largest amount in column 'amount'"),
        (lambda: audit(TEXTS[0], D, Y, sensitive_features=COLUMNS, largest_value=2), "got 2 for column 'amount'"),
        (
            lambda: bind("total(value=profit) >= 1 with confidence 0.9", table()),
            "on a total, which depends on how many",
        ),
    ],
)
def test_wrong_uses_in_python_are_refused_in_a_sentence(use, words):
    with pytest.raises((ValueError, TypeError), match=words):
        use()
    forget_metric("mine")


LIMIT = 3000.0
POPULATION = 50_000


class People:
    """A finite population with amounts, of which rows are drawn."""

    def __init__(self, kind):
        rng = np.random.default_rng(1)
        self.y = (rng.random(POPULATION) < 0.4).astype(int)
        self.sex = rng.choice(["F", "M"], POPULATION)
        self.amount = np.minimum(rng.lognormal(5, 1, POPULATION), LIMIT)
        wrong = rng.random(POPULATION) < 0.15
        if kind == "rare and large":
            rare = rng.random(POPULATION) < 0.01
            self.amount = np.where(rare, LIMIT, 10.0)
            wrong = np.where(rare, rng.random(POPULATION) < 0.5, wrong)
        self.profit = np.where(self.y == 1, self.amount, -self.amount)
        self.decided = np.where(wrong, 1 - self.y, self.y)

    def table(self, rows=slice(None)):
        columns = {"amount": self.amount[rows], "profit": self.profit[rows], "sex": self.sex[rows]}
        return Table(None, self.y[rows], columns, largest_value=LIMIT)


AUDITED = [
    "recall(value=amount) >= 0.8",
    "precision(value=amount) >= 0.8",
    "cost({1->0: amount, 0->1: 50}) <= 30",
    "cost({0->1: profit}) >= -30",
    "recall(sex=F, value=amount) - recall(sex=M, value=amount) <= 0.1",
]


def wrong_ends_of_amounts(people, text, n_rows, seeds, confidence=0.8):
    """Return how often the population's value is below, and above, the interval."""
    goal = parse_goal(text)
    check = goal.evaluate(people.decided, people.table())
    truth = check.value - (check.bound - goal.bound)
    wrong = np.zeros(2, dtype=int)
    for seed in seeds:
        rows = np.random.default_rng(seed).integers(0, POPULATION, n_rows)
        one = audit(goal, people.decided[rows], people.table(rows), confidence=confidence)[0]
        wrong += [truth < one.low, truth > one.high]
    return wrong


@pytest.mark.parametrize("kind", ["lognormal", slow("rare and large")])
@pytest.mark.parametrize("text", some_fast(AUDITED, 2))
def test_intervals_of_amounts_fail_as_seldom_as_promised(text, kind):
    n_samples = 40
    most = n_samples * 0.2 + 3 * np.sqrt(n_samples * 0.16)
    assert (wrong_ends_of_amounts(People(kind), text, 300, range(n_samples)) <= most).all()


def test_an_audit_of_a_total_is_a_fact_about_the_rows():
    result = audit("total(value=profit) >= 100", D, table(WEIGHT))
    one = result[0]
    assert one.estimate == one.low == one.high == pytest.approx((WEIGHT * PROFIT * D).sum())
    assert one.verdict == ("holds" if one.estimate >= 100 else "fails")
    assert "says nothing about others" in str(result)


def test_an_audit_says_what_it_takes_amounts_to_be():
    rows = Table(None, Y, COLUMNS, largest_value={"amount": 1e5})
    assert "if no amount in amount is above 100000 in size" in str(audit(TEXTS[0], D, rows))
