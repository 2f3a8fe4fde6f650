"""What a text has between the parentheses of a rate or a phrase, and what the whole then is."""

from dataclasses import dataclass, field, replace

from counterpoise.goals.class_rates import CONFUSION, COST, averaged, confused, costed, metric_name
from counterpoise.goals.expressions import Rate, Ratio, Several
from counterpoise.goals.phrases import FORMS, Phrase
from counterpoise.goals.ranges import Range, merged_ranges
from counterpoise.goals.rates import METRICS, RATIOS, named
from counterpoise.goals.rows import DEFAULT, Dataset
from counterpoise.goals.terms import MACRO
from counterpoise.goals.wording import UnknownName, unknown

OWN_WORDS = (*FORMS, MACRO, CONFUSION)  # names that no metric of a user's own can have; one may be called cost


@dataclass
class Arguments:
    """Rows, and what narrows them or says more."""

    rows: Dataset = field(default_factory=lambda: Dataset(DEFAULT))
    values: list[tuple[str, str]] = field(default_factory=list)  # what stands before and behind equals signs
    quoted: set[str] = field(default_factory=set)  # names in quotes: always columns
    ranges: list[Range] = field(default_factory=list)
    costs: list[tuple[str, str, float]] = field(default_factory=list)

    def made(self, name: str, metric: str) -> Rate | Ratio | Several:
        """Return what a name makes of the arguments."""
        rows = self._narrowed(name)
        if name == MACRO:
            return averaged(metric_name(metric), rows)
        if name in FORMS:
            return Phrase(name, rows, metric_name(metric) if metric else "", tuple(self._of_keyword(name, "by")))
        if name == CONFUSION:
            return confused(rows, next(iter(self._of_keyword(name, "called")), None))
        if self.costs and name != COST:
            raise ValueError(f"Costs in braces are for {COST}(train, {{sick->well: 20}}); {name} takes none.")
        if self.costs:
            return costed(rows, self.costs)
        if name == COST and COST not in {*METRICS, *RATIOS}:
            raise UnknownName(
                f"Unknown metric {COST!r} without costs: write them, as {COST}(train, {{sick->well: 20}})."
            )
        if name not in {*METRICS, *RATIOS}:
            raise unknown("metric", name, [*METRICS, *RATIOS, *OWN_WORDS, COST])
        return named(name, rows)

    def _narrowed(self, name: str) -> Dataset:
        asked: dict[str, str] = {}
        rows = self.rows
        for column, value in self.values:
            if column not in self._keywords(name) and asked.setdefault(column, value) != value:
                rows.where(**asked).where(**{column: value})  # which says what is wrong
        rows = replace(rows.where(**asked), ranges=merged_ranges(self.ranges))
        for of in self._of_keyword(name, "of"):
            rows = rows.seen_as(of)
        return rows

    def _of_keyword(self, name: str, word: str) -> list[str]:
        return [value for column, value in self.values if column == word and word in self._keywords(name)]

    def _keywords(self, name: str) -> set[str]:
        """Return the names that stand for something else than a column here."""
        known = {"of"} | ({"by"} if name in FORMS else set()) | ({"called"} if name == CONFUSION else set())
        return known - self.quoted
