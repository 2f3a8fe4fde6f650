"""All that goals can be made of, in one table: name, formula, what it needs, what it means."""

from collections.abc import Iterator
from typing import NamedTuple

from counterpoise.goals.class_rates import CONFUSION, COST
from counterpoise.goals.expressions import Rate, Ratio
from counterpoise.goals.phrases import FORMS, Form
from counterpoise.goals.rates import MEANINGS, METRICS, RATIOS
from counterpoise.goals.rows import Cell, Dataset
from counterpoise.goals.terms import MACRO, Count, Metric
from counterpoise.goals.wording import written_number

LEGEND = (
    "#[...] is the weight of the rows for which it holds, n that of all rows; p is the prediction, y the label, b the "
    "prediction of the baseline, c the class that of names, by default the positive one. p=- is a deferred row, which "
    "is not among p!=c."
)
_LABELS, _GROUPS, _BASELINE = "labels", "groups", "baseline"


class Entry(NamedTuple):
    """A metric or a phrase."""

    name: str
    formula: str
    needs: str  # of the data
    meaning: str


def catalogue() -> list[Entry]:
    """Return all metrics, those registered among them, and all phrases.

    Examples
    --------
    >>> from counterpoise.goals.catalogue import catalogue
    >>> print(*next(entry for entry in catalogue() if entry.name == "recall"), sep="; ")
    recall; #[p=c, y=c] / #[y=c]; labels; the share of positive predictions among the rows labelled positive
    """
    return [*_metrics(), *_ratios(), *_of_classes(), *_phrases()]


def _metrics() -> Iterator[Entry]:
    for name, metric in METRICS.items():
        yield Entry(name, _formula(metric), _needs(metric), MEANINGS[name])


def _ratios() -> Iterator[Entry]:
    for name, make in RATIOS.items():
        ratio = make(Dataset())
        sides = [ratio.numerator, ratio.denominator]
        written = [_short(side) for side in sides]
        needs = dict.fromkeys(word for side in sides for term in side.terms for word in _needs(term.metric).split(", "))
        yield Entry(name, " / ".join(written), ", ".join(filter(None, needs)), MEANINGS[name])


def _of_classes() -> Iterator[Entry]:
    yield Entry(
        CONFUSION, "#[p=d, y=c] / #[y=c]", _LABELS, "the share of the rows of one class, of, called another, called"
    )
    yield Entry(
        COST, "sum of cost(c->d) * #[p=d, y=c] / n", _LABELS, "the average cost of a row, with a matrix of costs"
    )
    yield Entry(MACRO, "mean over classes c of metric(of=c)", "", "the average of a metric over all classes")
    yield Entry("abs", "max(rate, -rate)", "", "the absolute value, most often of a difference of two rates")


def _phrases() -> Iterator[Entry]:
    for name, form in FORMS.items():
        yield Entry(name, _form_formula(form), _form_needs(form), form.meaning)


def _form_formula(form: Form) -> str:
    return form.formula if not form.metrics else f"{form.formula}, of {' and '.join(form.metrics)}"


def _form_needs(form: Form) -> str:
    words = [word for name in form.metrics for word in _needs(METRICS[name]).split(", ")]
    return ", ".join(filter(None, dict.fromkeys([*words, _GROUPS if form.by else ""])))


def _needs(metric: Metric) -> str:
    cells = [
        metric.out_of,
        *(count.cell for count in metric.counts),
        *(one.out_of for one in metric.counts if one.out_of),
    ]
    words = [_LABELS] if any(cell.label is not None for cell in cells) else []
    return ", ".join(words + ([_BASELINE] if any(cell.baseline is not None for cell in cells) else []))


def _formula(metric: Metric) -> str:
    """Return what a metric counts, out of what."""
    parts: dict[Cell, list[Count]] = {}
    for count in metric.counts:
        parts.setdefault(metric.out_of if count.out_of is None else count.out_of, []).append(count)
    return " + ".join(f"{_sum(counts)} / {_weight(cell) or 'n'}" for cell, counts in parts.items())


def _sum(counts: list[Count]) -> str:
    found = ""
    for count in counts:
        size = "" if abs(count.coefficient) == 1 else f"{written_number(abs(count.coefficient))} "
        sign = ("" if count.coefficient > 0 else "-") if not found else (" + " if count.coefficient > 0 else " - ")
        found += f"{sign}{size}{_weight(count.cell, _answer(count))}"
    return f"({found})" if len(counts) > 1 else found


def _answer(count: Count) -> str:
    return "p=-" if count.positive is None else f"p{_is(is_it=count.positive)}c"


def _weight(cell: Cell, *words: str) -> str:
    parts = [*words]
    parts += [
        f"{name}{_is(is_it=value)}c" for name, value in (("y", cell.label), ("b", cell.baseline)) if value is not None
    ]
    return f"#[{', '.join(parts)}]" if parts else ""


def _is(*, is_it: bool) -> str:
    return "=" if is_it else "!="


def _short(rate: Rate | Ratio) -> str:
    """Return the text of a rate without its rows."""
    text = str(rate).replace(f"({Dataset()})", "")
    return f"({text})" if " + " in text or " - " in text else text
