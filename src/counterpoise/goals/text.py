"""Goals and rates from whatever they are given as: themselves, lists of them, their texts.

    goal    = sum ("<=" | ">=") sum ["with" "confidence" number]
    sum     = product (("+" | "-") product)*
    product = factor (("*" | "/") factor)*
    factor  = number | "-" factor | "(" sum ")" | "abs" "(" sum ")" | name "(" [metric ","] [rows] ")"
    rows    = dataset ["." restriction]* ("," condition)*
    condition = column "=" value | column sign number | number sign column [sign number] | matrix
    matrix  = "{" class "->" class ":" number ("," class "->" class ":" number)* "}"

Names and values other than plain words and numbers stand in single or double quotes; a quote inside is doubled. Without
a dataset the rows are those of ``train``. ``of``, and for some names ``called`` and ``by``, stand where a column would.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

from counterpoise._base.checks import check_confidence
from counterpoise.goals.expressions import Expression, Goal, Rate, Ratio, Several, as_rate
from counterpoise.goals.rates import (
    CONFUSION,
    COST,
    FORMS,
    METRICS,
    RATIOS,
    Phrase,
    averaged,
    confused,
    costed,
    metric_name,
    named,
    pair_of,
)
from counterpoise.goals.rows import DEFAULT, MACRO, RESTRICTIONS, Dataset, Term
from counterpoise.goals.values import (
    MIRRORED,
    NUMBER,
    QUOTED,
    WORD,
    Range,
    UnknownName,
    between,
    merged_ranges,
    unknown,
    without_quotes,
)

_TOKEN = re.compile(
    rf"(?P<number>{NUMBER})|(?P<word>{WORD})|(?P<quoted>{QUOTED})|(?P<sign><=|>=|->|[-+*/().,=<>{{}}:])"
)
_LONG = 100_000  # characters; the longest goals, on a thousand groups, have half of them
_SHOWN = 100  # characters of the text on either side of what is wrong in it
_MOST_WORK = 50_000  # terms passed over in sums and products: a sum of a thousand passes over a thousand
_DEEP = 50  # parentheses inside parentheses; no goal needs more, and Python's stack is finite
_SUMS: dict[str, Callable[[Any], Any]] = {"+": operator.pos, "-": operator.neg}
_PRODUCTS = {"*": operator.mul, "/": operator.truediv}


class GoalSyntaxError(ValueError):
    """A goal's text that cannot be read; the message shows the place and says what was expected there."""

    __module__ = "counterpoise.goals"


class Token(NamedTuple):
    """A word of the text: its kind (number, word, quoted, sign, end), its characters and its place."""

    kind: str
    text: str
    place: int


def read_expression(text: str) -> Any:
    """Return the rate, ratio or number that a text stands for."""
    reader = _Reader(text)
    found = reader.sum()
    reader.expect_end()
    return found


class Comparison(NamedTuple):
    """The two sides of a goal's text, the sign between them, and the confidence that it ends with, if any."""

    left: Any
    sign: str
    right: Any
    confidence: float | None


def read_comparison(text: str) -> Comparison:
    """Return the parts of a goal's text."""
    reader = _Reader(text)
    left = reader.sum()
    sign = reader.take("<=", ">=").text
    right = reader.sum()
    confidence = reader.confidence()
    reader.expect_end()
    if not isinstance(left, Expression) and not isinstance(right, Expression):
        raise GoalSyntaxError(f"A goal needs a rate on at least one side, as in recall(train) >= 0.9; got {text!r}.")
    return Comparison(left, sign, right, confidence)


def _tokens(text: str) -> list[Token]:
    found, place = [], 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        match = _TOKEN.match(text, place)
        if match is None:
            raise _error(text, place, _foreign(text[place]))
        found.append(Token(str(match.lastgroup), match.group(), place))
        place = match.end()
    return found + 2 * [Token("end", "", len(text))]  # two, so that one may look ahead


def _foreign(character: str) -> str:
    if character in "\u2264\u2265":
        return f"a goal is written with <= or >=, found {character!r}"
    if character == "%":
        return "found '%'; write a share as a number, 0.9 for 90 %"
    found = "an unfinished quote" if character in "'\"" else repr(character)
    return f"found {found}; put names and values with special characters in quotes"


def _error(text: str, place: int, problem: str) -> GoalSyntaxError:
    first, last = max(0, place - _SHOWN), place + _SHOWN
    line = re.sub(r"\s", " ", text[first:last])  # several lines, or tabs, would put the mark elsewhere
    shown = f"{'...' if first else ''}{line}{'...' if last < len(text) else ''}"
    mark = " " * (place - first + (3 if first else 0))
    return GoalSyntaxError(f"Cannot read the goal at character {place + 1}: {problem}.\n    {shown}\n    {mark}^")


def _short(text: str) -> str:
    return text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}..."


def _size(value: Any) -> int:
    """Return of how many terms a rate or ratio is made."""
    if isinstance(value, Ratio):
        return len(value.numerator.terms) + len(value.denominator.terms)
    return len(value.terms) if isinstance(value, Rate) else 0


def _total(parts: Sequence[Any]) -> Any:
    """Return a sum. Rates are added at once: one after the other takes a time that grows with the square of them."""
    if len(parts) == 1:
        return parts[0]
    rates = [rate for rate in map(as_rate, parts) if rate is not None]
    if len(rates) < len(parts) or not any(isinstance(part, Rate) for part in parts):  # with a ratio, or numbers only
        return reduce(operator.add, parts)
    constant = reduce(operator.add, (rate.constant for rate in rates))
    return 1.0 * Rate(constant, tuple(term for rate in rates for term in rate.terms))


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


class _Reader:
    """Reads a text from left to right, one method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"A goal's text must be a string; got {type(text).__name__}.")
        if len(text) > _LONG:
            raise GoalSyntaxError(f"A goal's text must have at most {_LONG} characters; got {len(text)}.")
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0
        self._work = 0

    def sum(self) -> Any:
        parts = [self._product()]
        self._count(_size(parts[0]))
        while self._next.text in _SUMS and self._next.kind == "sign":
            signed = _SUMS[self._advance().text]
            parts.append(signed(self._product()))
            self._count(_size(parts[-1]) or _size(parts[0]))  # numbers are added to a ratio one by one
        return _total(parts)

    def confidence(self) -> float | None:
        if self._next.text != "with":
            return None
        for what in ("with", "confidence"):
            word = self._advance()
            if word.text != what:
                raise self._expected(word, f"{what!r}")
        number = self._advance()
        if number.kind != "number":
            raise self._expected(number, "a number such as 0.95")
        try:
            return check_confidence(float(number.text))
        except ValueError as error:
            raise self._wrong(number, str(error).rstrip(".")) from None

    def _product(self) -> Any:
        found = self._factor()
        while self._next.text in _PRODUCTS and self._next.kind == "sign":
            token = self._advance()
            self._count(_size(found))
            try:
                found = _PRODUCTS[token.text](found, self._factor())
            except ZeroDivisionError:
                raise self._wrong(token, "this divides by zero") from None
        return found

    def _factor(self) -> Any:
        token = self._advance()
        self._depth += 1
        if self._depth > _DEEP:
            raise self._wrong(token, "parentheses and signs are nested too deeply")
        if token.kind == "number":
            found = float(token.text)
        elif token.kind == "word":
            found = self._absolute(token) if token.text == "abs" else self._metric(token)
        elif token.text == "-":
            found = -self._factor()
        elif token.text == "(" and token.kind == "sign":
            found = self.sum()
            self.take(")")
        else:
            raise self._expected(token, "a rate such as recall(train), a number or '('")
        self._depth -= 1
        return found

    def _count(self, n_terms: int) -> None:
        self._work += n_terms
        if self._work > _MOST_WORK:
            raise self._wrong(self._next, "the goal has too many terms, or too much is multiplied")

    def _absolute(self, name: Token) -> Any:
        self.take("(")
        inner = self.sum()
        self.take(")")
        if not isinstance(inner, (Rate, Ratio)) or (isinstance(inner, Rate) and not inner.terms):
            raise self._wrong(name, "abs is of a rate or of a difference of rates")
        return abs(inner)

    def _metric(self, name: Token) -> Any:
        self.take("(")
        metric = ""
        if name.text == MACRO or (name.text in FORMS and not FORMS[name.text].metrics):
            metric = self._name("the name of a metric")
            self._take_comma()
        asked = self._arguments()
        self.take(")")
        try:
            return asked.made(name.text, metric)
        except UnknownName as error:
            raise UnknownName(f"{error} At character {name.place + 1} of {_short(self._text)!r}.") from None

    def _take_comma(self) -> None:
        if self._is_sign(","):
            self._advance()

    def _arguments(self) -> Arguments:
        asked = Arguments()
        if self._is_sign(")"):
            return asked
        begins = self._next.kind == "number" or self._next.text in {"-", "{"}
        if not begins and self._tokens[self._at + 1].text not in {"=", *MIRRORED}:
            asked.rows = self._dataset()
            if not self._is_sign(","):
                return asked
            self._advance()
        while True:
            self._condition(asked)
            if not self._is_sign(","):
                return asked
            self._advance()

    def _dataset(self) -> Dataset:
        rows = Dataset(self._name("the name of a dataset"))
        while self._is_sign("."):
            self._advance()
            word = self._name("one of " + ", ".join(RESTRICTIONS))
            if word not in RESTRICTIONS:
                raise unknown("restriction", word, RESTRICTIONS, where=f" in {_short(self._text)!r}")
            rows = getattr(rows, word)
        return rows

    def _condition(self, asked: Arguments) -> None:
        if self._is_sign("{"):
            asked.costs.extend(self._costs())
            return
        first = None
        if self._next.kind == "number" or self._is_sign("-"):
            number = self._number()
            first = MIRRORED[self.take(*MIRRORED).text], number
        is_word, column = self._next.kind == "word", self._name("the name of a column")
        if first is None and self._is_sign("="):
            self._advance()
            asked.values.append((column, self._value()))
            asked.quoted.update(() if is_word else (column,))
            return
        last = None
        if first is None or (self._next.kind == "sign" and self._next.text in MIRRORED):
            sign = self._advance()
            if sign.kind != "sign" or sign.text not in MIRRORED:
                raise self._expected(sign, "'=' or one of <= >= < >")
            last = sign.text, self._number()
        asked.ranges.append(between(column, first, last))

    def _number(self) -> str:
        minus = "-" if self._is_sign("-") and self._advance() else ""
        token = self._advance()
        if token.kind != "number":
            raise self._expected(token, "a number, as in age<=33; for a text write column=value")
        return minus + token.text

    def _costs(self) -> Iterator[tuple[str, str, float]]:
        self.take("{")
        while True:
            is_quoted, label = self._next.kind == "quoted", self._value()
            if is_quoted and self._is_sign(":"):  # both classes in one pair of quotes, as Python writes them
                yield (*pair_of(label), self._amount())
            else:
                self.take("->")
                yield label, self._value(), self._amount()
            if self.take(",", "}").text == "}":
                return

    def _amount(self) -> float:
        self.take(":")
        return float(self._number())

    def _name(self, what: str) -> str:
        token = self._advance()
        if token.kind not in {"word", "quoted"}:
            raise self._expected(token, what)
        return token.text if token.kind == "word" else without_quotes(token.text)

    def _value(self) -> str:
        token = self._advance()
        if token.kind == "quoted":
            return without_quotes(token.text)
        minus = "-" if token.text == "-" else ""
        number = self._advance() if minus else token
        if number.kind != "number" and (minus or number.kind != "word"):
            raise self._expected(number, "a value: a word, a number, or anything in quotes")
        return minus + number.text

    def take(self, *signs: str) -> Token:
        """Return the next token, which must be one of the signs."""
        token = self._advance()
        if "<=" in signs and "<" not in signs:  # between the two sides of a goal
            odd = next((one for one in (token, self._next) if one.kind == "sign" and one.text in {"<", ">"}), None)
            if odd is not None:
                raise self._wrong(odd, f"a goal is written with <= or >=, found {odd.text!r}")
        if token.kind != "sign" or token.text not in signs:
            raise self._expected(token, " or ".join(map(repr, signs)))
        return token

    def expect_end(self) -> None:
        """Check that nothing follows."""
        if self._next.text in {"<=", ">="}:
            raise self._wrong(self._next, "a goal has one comparison; for two limits write two goals")
        if self._next.kind != "end":
            raise self._expected(self._next, "the end, or one of + - * /")

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _is_sign(self, sign: str) -> bool:
        return self._next.kind == "sign" and self._next.text == sign

    def _advance(self) -> Token:
        token = self._next
        self._at = min(self._at + 1, len(self._tokens) - 2)
        return token

    def _expected(self, token: Token, what: str) -> GoalSyntaxError:
        found = "the end of the text" if token.kind == "end" else repr(token.text)
        # What goes on where a condition should end is a value of several words or signs.
        quotes = what == "')'" and token.kind != "end" and self._text[: token.place].rpartition("(")[2].count("=")
        hint = "; values that are no plain word stand in quotes, as in sex='not known'" if quotes else ""
        return self._wrong(token, f"expected {what}, found {found}{hint}")

    def _wrong(self, token: Token, problem: str) -> GoalSyntaxError:
        return _error(self._text, token.place, problem)


def parse_goal(text: str) -> Goal:
    """Read a goal from its text form; ``parse_goal(str(goal)) == goal`` for every goal.

    Examples
    --------
    >>> from counterpoise.goals import parse_goal
    >>> parse_goal("recall(train, country='New Zealand') >= 0.9")
    <Goal recall(train, country='New Zealand') >= 0.9>
    >>> parse_goal("precison(train) >= 0.9")
    Traceback (most recent call last):
    ...
    counterpoise.goals.UnknownName: Unknown metric 'precison'. Did you mean 'precision'? ...
    """
    left, sign, right, confidence = read_comparison(text)
    goal: Goal = left <= right if sign == "<=" else left >= right
    return goal.with_confidence(confidence)


def parse_rate(text: str) -> Rate:
    """Read a rate, such as an objective, from its text form.

    Examples
    --------
    >>> from counterpoise.goals import error_rate, false_positive_rate, parse_rate
    >>> rate = parse_rate("error_rate(train) + 2 * false_positive_rate(mail)")
    >>> rate == error_rate("train") + 2 * false_positive_rate("mail")
    True
    """
    return as_objective(read_expression(text))


def as_goals(goals: Any) -> tuple[Goal, ...]:
    """Return goals, given any mixture of goals, their texts and nested lists of both, as a flat tuple.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, as_goals, eighty_percent_rule
    >>> groups = Dataset("train").by(sex=["F", "M"])
    >>> len(as_goals(["recall(train) >= 0.9", eighty_percent_rule(groups)]))
    3
    """
    if isinstance(goals, Goal):
        return (goals,)
    if isinstance(goals, str):
        return (parse_goal(goals),)
    if not isinstance(goals, Iterable):
        raise TypeError(f"goals must be goals or their texts, as in recall(train) >= 0.9; got {goals!r}.")
    return tuple(goal for part in goals for goal in as_goals(part))


def are_asked(goals: Any) -> bool:
    """Tell whether there are goals, of what ``as_goals`` takes, without reading their texts.

    Examples
    --------
    >>> from counterpoise.goals.text import are_asked
    >>> are_asked(["recall(train) >= 0.9"]), are_asked([[], ()])
    (True, False)
    """
    return isinstance(goals, (Goal, str)) or any(are_asked(part) for part in goals)


def refuse_deferral(asked: Iterable[Goal | Rate]) -> None:
    """Refuse goals and objectives that speak of deferred rows, for whoever decides about all rows."""
    for one in asked:
        if any(all(count.positive is None for count in term.metric.counts) for term in terms_of(one)):
            raise ValueError(
                f"{one} speaks of deferred rows, and nothing is deferred: set deferral, the loss of a row that a "
                "person decides about, as in GoalClassifier(deferral=Deferral(0.2)); in a goals file it is a parameter "
                'of the method "goals", deferral = { cost = 0.2 }, on the command line --defer-cost.'
            )


def terms_of(asked: Any) -> Iterator[Term]:
    """Yield all terms of a goal, a rate or a ratio."""
    if isinstance(asked, Goal):
        left = asked.left.sample if isinstance(asked.left, Several) else (asked.left,)
        for side in (*left, asked.right):
            yield from terms_of(side)
    elif isinstance(asked, Ratio):
        yield from (*asked.numerator.terms, *asked.denominator.terms)
    else:
        yield from asked.terms


def as_objective(objective: Any) -> Rate:
    """Return what an estimator shall minimize, given a rate or its text; ratios are refused.

    Examples
    --------
    >>> from counterpoise.goals import as_objective
    >>> as_objective("error_rate(train) + 2 * false_positive_rate(mail)")
    <error_rate(train) + 2 * false_positive_rate(mail)>
    """
    if isinstance(objective, str):
        return parse_rate(objective)
    if isinstance(objective, Ratio):
        raise TypeError(
            f"{objective} is a ratio, which is not linear in the predictions, so it cannot be the objective. Minimize "
            f"error_rate(train), and set a goal such as {objective} >= 0.9: a goal can be multiplied through."
        )
    if isinstance(objective, Several):
        raise TypeError(
            f"{objective} is the worst of several rates, which is not linear, so it cannot be the objective. Minimize "
            f"error_rate(train), and set a goal such as {objective} {objective.sense or '>='} 0.1."
        )
    rate = as_rate(objective)
    if rate is None or not rate.terms:
        raise TypeError(f"An objective must be a rate, as error_rate(train) is; got {objective!r}.")
    return rate
