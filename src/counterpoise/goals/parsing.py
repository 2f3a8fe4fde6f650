"""Goals and rates from goals, from lists of them, or from their texts.

    goal    = limit ["with" "confidence" number]
    limit   = sum ("<=" | ">=") sum | sum "==" sum ["+-" number]
    sum     = product (("+" | "-") product)*
    product = factor (("*" | "/") factor)*
    factor  = number | "-" factor | "(" sum ")" | "abs" "(" sum ")" | name ["(" [metric [","]] [rows] ")"]
    rows    = [dataset ["." restriction]*] [","] [condition ("," condition)*]
    condition = column "=" value | column sign number | number sign column [sign number] | matrix
    matrix  = "{" cost ("," cost)* "}"
    cost    = class "->" class ":" (number | column)

Names and values other than plain words and numbers stand in single or double quotes; a quote inside is doubled. Without
a dataset the rows are those that are judged, of the dataset ``train``: ``recall >= 0.7`` is ``recall(train) >= 0.7``.
``of`` and ``value``, and for some names ``called``, ``by``, ``within``, ``average`` and ``min_rows``, stand where a
column would, and ``twin`` for ``flip_rate``. These words are never columns; the same names in quotes always are.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

from counterpoise._base.checks import check_confidence
from counterpoise._base.text import shown
from counterpoise.goals.disparity import DISPARITY, WorstDisparity
from counterpoise.goals.equality import TOLERANCE, equal
from counterpoise.goals.expressions import Expression, Goal, Rate, Ratio, WorstOf, as_rate, make_goal, terms_of
from counterpoise.goals.rates import (
    ALIASES,
    CONFUSION,
    COST,
    FLIP_RATE,
    FORMS,
    METRICS,
    RATIOS,
    TOTAL,
    WorstRate,
    make_confusion,
    make_cost,
    make_flip_rate,
    make_macro,
    make_metric,
    make_total,
    pair_of,
)
from counterpoise.goals.terms import (
    DEFAULT,
    MACRO,
    MIRRORED,
    NUMBER,
    QUOTED,
    RESTRICTIONS,
    WORD,
    Dataset,
    Range,
    UnknownName,
    as_truth,
    merge_ranges,
    range_between,
    unknown,
    without_quotes,
)
from counterpoise.goals.words import RESERVED, check_min_rows, not_reserved

# Names that no metric of a user's own can have; one may be called cost.
OWN_WORDS = (*FORMS, MACRO, CONFUSION, FLIP_RATE, DISPARITY)
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{NUMBER})|(?P<word>{WORD})|(?P<quoted>{QUOTED})|(?P<sign><=|>=|==|->|\+-|[-+*/().,=<>{{}}:]))"
)
_LONG = 100_000  # characters; the longest goals, on a thousand groups, have half of them
_SHOWN = 100  # characters of the text on either side of what is wrong in it
_DIGITS = 19  # of a number of rows; Python refuses to read thousands of them
_MOST_WORK = 50_000  # terms passed over in sums and products: a sum of a thousand passes over a thousand
_DEEP = 50  # parentheses inside parentheses; no goal needs more, and Python's stack is finite
_NAME = ("word", "quoted")
_VALUE = ("a value: a word, a number, or anything in quotes", "word", "quoted", "number")
_NUMBER = ("a number, as in age<=33; for a text write column=value", "number")
_AMOUNT = ("a number, or the name of a column of amounts", "number", *_NAME)
_SUMS: dict[str, Callable[[Any], Any]] = {"+": operator.pos, "-": operator.neg}
_PRODUCTS = {"*": operator.mul, "/": operator.truediv}


class GoalSyntaxError(ValueError):
    """A goal's text that cannot be read; the message shows the place and what was expected there."""

    __module__ = "counterpoise.goals"


class Token(NamedTuple):
    """A word of the text: its kind (number, word, quoted, sign, end), its characters and its place.

    A sign is known by its characters: a quoted text has its quotes among them.
    """

    kind: str
    text: str
    place: int


class _Arguments(NamedTuple):
    """What stands between the parentheses of a rate or a phrase."""

    rows: Dataset
    values: list[tuple[str, str, bool]]  # what stands before and behind equals signs; is the first in quotes?
    ranges: list[Range]
    costs: list[tuple[str, str, float | str]]


class _Reader:
    """Reads a text from left to right, one method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"A goal's text must be a string; got {type(text).__name__}.")
        if len(text) > _LONG:
            raise GoalSyntaxError(f"A goal's text must have at most {_LONG} characters; got {len(text)}.")
        self.text = text
        self.tokens: list[Token] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            match = _TOKEN.match(text, place)
            if match is None:
                place = end - len(text[place:end].lstrip())
                raise self.wrong(place, _describe_character(text[place]))
            kind = str(match.lastgroup)
            self.tokens.append(Token(kind, match[kind], match.start(kind)))
            place = match.end()
        self.tokens += 2 * [Token("end", "", len(text))]  # two, so that one may look ahead
        self.next = self.tokens[0]
        self._at = self._depth = self._work = 0

    def sum(self) -> Any:
        parts = [self._product()]
        self._count(parts[0])
        while self.next.text in _SUMS:
            signed = _SUMS[self.advance().text]
            parts.append(signed(self._product()))
            self._count(parts[-1], parts[0])  # numbers are added to a ratio one by one
        return parts[0] if len(parts) == 1 else _total(parts)

    def tolerance(self) -> float:
        number = self.advance()
        if number.kind != "number":
            raise self._expected(number, "a tolerance behind +-: a number such as 0.005")
        return float(number.text)

    def confidence(self) -> float:
        for what in ("with", "confidence"):
            word = self.advance()
            if word.text != what:
                raise self._expected(word, f"{what!r}")
        number = self.advance()
        if number.kind != "number":
            raise self._expected(number, "a number such as 0.95")
        try:
            return check_confidence(float(number.text))
        except ValueError as error:
            raise self.wrong(number.place, str(error).rstrip(".")) from None

    def _product(self) -> Any:
        product = self._factor()
        while self.next.text in _PRODUCTS:
            token = self.advance()
            self._count(product)
            try:
                product = _PRODUCTS[token.text](product, self._factor())
            except ZeroDivisionError:
                raise self.wrong(token.place, "this divides by zero") from None
        return product

    def _factor(self) -> Any:
        token = self.advance()
        self._depth += 1
        if self._depth > _DEEP:
            raise self.wrong(token.place, "parentheses and signs are nested too deeply")
        if token.kind == "number":
            factor: Any = float(token.text)
        elif token.text == "abs":
            self.take("(")
            factor = self.sum()
            self.take(")")
            if not isinstance(factor, (Rate, Ratio)) or (isinstance(factor, Rate) and not factor.terms):
                raise self.wrong(token.place, "abs takes a rate or a difference of rates")
            factor = abs(factor)
        elif token.kind == "word":
            factor = self._metric(token)
        elif token.text == "-":
            factor = -self._factor()
        elif token.text == "(":
            factor = self.sum()
            self.take(")")
        else:
            raise self._expected(token, "a rate such as recall, a number or '('")
        self._depth -= 1
        return factor

    def _count(self, *values: Any) -> None:
        """Count the terms of the first value that has any: what is done with them takes its time."""
        for value in values:
            sides = (value.numerator, value.denominator) if isinstance(value, Ratio) else (value,)
            n_terms = sum(len(side.terms) for side in sides if isinstance(side, Rate))
            if n_terms:
                self._work += n_terms
                break
        if self._work > _MOST_WORK:
            raise self.wrong(self.next.place, "the goal has too many terms, or too much is multiplied")

    def _metric(self, name: Token) -> Any:
        arguments = _Arguments(Dataset(DEFAULT), [], [], [])
        needs_metric = name.text == MACRO or (name.text in FORMS and not FORMS[name.text].metrics)
        is_bare = not self.skip("(")
        if needs_metric and (is_bare or self.next.text == ")" or self.tokens[self._at + 1].text == "="):
            example = f"{name.text}(recall{', by=sex' if name.text in FORMS and FORMS[name.text].by else ''})"
            raise self.wrong(name.place, f"{name.text} needs the name of a metric first, as in {example}")
        if is_bare and self.next.kind in _NAME and self.next.text != "with":
            raise self._expected(self.next, "'('")
        if is_bare:
            return self._make(name, "", arguments)
        metric, has_more = "", self.next.text != ")"
        if needs_metric:
            metric = self._word("the name of a metric", *_NAME)
            if not self.skip(",") and self.next.text != ")":
                raise self._expected(self.next, f"',' or ')' after the metric {metric}")
            has_more = self.next.text != ")"
        begins = self.next.kind == "number" or self.next.text in {"-", "{"}
        if has_more and not begins and self.tokens[self._at + 1].text not in {"=", *MIRRORED}:
            rows = Dataset(self._word("the name of a dataset", *_NAME))
            while self.skip("."):
                word = self._word("one of " + ", ".join(RESTRICTIONS), *_NAME)
                if word not in RESTRICTIONS:
                    raise unknown("restriction", word, RESTRICTIONS, where=f" in {shown(self.text)}")
                rows = getattr(rows, word)
            arguments, has_more = arguments._replace(rows=rows), self.skip(",")
        while has_more:
            self._condition(arguments)
            has_more = self.skip(",")
        self.take(")")
        return self._make(name, metric, arguments)

    def _make(self, name: Token, metric: str, arguments: _Arguments) -> Rate | Ratio | WorstOf:
        try:
            return _make_expression(name.text, ALIASES.get(metric, metric), arguments)
        except UnknownName as error:
            raise UnknownName(f"{error} At character {name.place + 1} of {shown(self.text)}.") from None

    def _condition(self, arguments: _Arguments) -> None:
        if self.next.text == "{":
            arguments.costs.extend(self._costs())
            return
        first = last = None
        if self.next.kind == "number" or self.next.text == "-":
            number = self._word(*_NUMBER)
            first = MIRRORED[self.take(*MIRRORED).text], number
        is_word, column = self.next.kind == "word", self._word("the name of a column", *_NAME)
        if first is None and self.skip("="):
            arguments.values.append((column, self._word(*_VALUE), not is_word))
            return
        if first is None or self.next.text in MIRRORED:
            sign = self.advance()
            if sign.text not in MIRRORED:
                raise self._expected(sign, "'=' or one of <= >= < >", "; a dataset stands before all conditions")
            last = sign.text, self._word(*_NUMBER)
        arguments.ranges.append(range_between(not_reserved(column) if is_word else column, first, last))

    def _costs(self) -> Iterator[tuple[str, str, float | str]]:
        self.take("{")
        while True:
            is_quoted, label = self.next.kind == "quoted", self._word(*_VALUE)
            if is_quoted and self.next.text == ":":  # both classes in one pair of quotes, as Python writes them
                label, called = pair_of(label)
            else:
                self.take("->")
                called = self._word(*_VALUE)
            self.take(":")
            is_column, amount = self.next.kind in _NAME, self._word(*_AMOUNT)
            yield label, called, amount if is_column else float(amount)
            if self.take(",", "}").text == "}":
                return

    def _word(self, what: str, *kinds: str) -> str:
        """Return the next word, of one of some kinds, without its quotes; a number may have a sign."""
        minus = "-" if "number" in kinds and self.skip("-") else ""
        token = self.advance()
        if token.kind not in (("number",) if minus else kinds):
            raise self._expected(token, what)
        return minus + (without_quotes(token.text) if token.kind == "quoted" else token.text)

    def take(self, *signs: str) -> Token:
        """Return the next token, which must be one of the signs."""
        token = self.advance()
        if "<=" in signs and "<" not in signs:  # between the two sides of a goal
            odd = next((one for one in (token, self.next) if one.text in {"<", ">"}), None)
            if odd is not None:
                raise self.wrong(odd.place, f"a goal is written with <= or >=, got {odd.text!r}")
            if token.text == "=":
                raise self.wrong(token.place, "a goal is written with <=, >= or ==, got '='")
        if token.text not in signs:
            raise self._expected(token, " or ".join(map(repr, signs)))
        return token

    def skip(self, sign: str) -> bool:
        """Go on behind a sign where it is next, and return whether it was."""
        return self.next.text == sign and bool(self.advance())

    def expect_end(self) -> None:
        """Check that nothing follows."""
        if self.next.text == "+-":
            example = "as in selection_rate == 0.2 +- 0.005"
            raise self.wrong(self.next.place, f"+- stands before the tolerance of an equality, {example}")
        if self.next.text in {"<=", ">=", "=="}:
            raise self.wrong(self.next.place, "a goal has one comparison; for two limits write two goals")
        if self.next.kind != "end":
            raise self._expected(self.next, "the end, or one of + - * /")

    def advance(self) -> Token:
        """Return the next token and go on to the one behind it."""
        token = self.next
        self._at = min(self._at + 1, len(self.tokens) - 2)
        self.next = self.tokens[self._at]
        return token

    def _expected(self, token: Token, what: str, hint: str = "") -> GoalSyntaxError:
        got = "the end of the text" if token.kind == "end" else repr(token.text)
        # What goes on where a condition should end is a value of several words or signs.
        quotes = what == "')'" and token.kind != "end" and self.text[: token.place].rpartition("(")[2].count("=")
        hint = "; put a value of several words in quotes, as in sex='not known'" if quotes else hint
        return self.wrong(token.place, f"expected {what}, found {got}{hint}")

    def wrong(self, place: int, problem: str) -> GoalSyntaxError:
        """Return the error for a problem at a place of the text."""
        first, last = max(0, place - _SHOWN), place + _SHOWN
        line = re.sub(r"\s", " ", self.text[first:last])  # several lines, or tabs, would put the mark elsewhere
        excerpt = f"{'...' if first else ''}{line}{'...' if last < len(self.text) else ''}"
        mark = " " * (place - first + (3 if first else 0))
        return GoalSyntaxError(f"Cannot read the goal at character {place + 1}: {problem}.\n    {excerpt}\n    {mark}^")


def _describe_character(character: str) -> str:
    if character in "\u2264\u2265":
        return f"a goal is written with <= or >=, got {character!r}"
    if character == "\u00b1":
        return "the tolerance of an equality is written with +-, as in selection_rate == 0.2 +- 0.005"
    if character == "%":
        return "found '%'; write a share as a number, 0.9 for 90 %"
    got = "an unfinished quote" if character in "'\"" else repr(character)
    return f"found {got}; put names and values with special characters in quotes"


def _total(parts: Sequence[Any]) -> Any:
    """Return a sum. Rates are added at once: one after the other takes a time that grows with the square of them."""
    rates = [rate for rate in map(as_rate, parts) if rate is not None]
    if len(rates) < len(parts) or not any(isinstance(part, Rate) for part in parts):  # with a ratio, or numbers only
        return reduce(operator.add, parts)
    constant = reduce(operator.add, (rate.constant for rate in rates))
    return 1.0 * Rate(constant, tuple(term for rate in rates for term in rate.terms))


def _read_arguments(name: str, arguments: _Arguments) -> tuple[Dataset, dict[str, list[str]]]:
    """Return the rows, and the values of words that stand where a column would but are none, unless in quotes."""
    keywords = {"of", "value", *(["called"] if name == CONFUSION else [])}
    keywords |= {"by", "within", "average", "min_rows"} if name in FORMS else {"min_rows"} if name == MACRO else set()
    keywords |= {"by", "within"} if name == DISPARITY else set()
    keywords |= {"twin"} if name in FORMS or name == FLIP_RATE else set()
    rows = arguments.rows
    columns: dict[str, str] = {}
    words: dict[str, list[str]] = {word: [] for word in RESERVED}
    for column, value, is_quoted in arguments.values:
        if column in keywords and not is_quoted:
            words[column].append(value)
        elif columns.setdefault(column if is_quoted else not_reserved(column), value) != value:
            rows.select(columns).select({column: value})  # raises: the two values contradict each other
    rows = rows.select(columns) if columns else rows
    rows = replace(rows, ranges=merge_ranges(arguments.ranges)) if arguments.ranges else rows
    rows = reduce(Dataset.with_twin, words["twin"], rows)
    for word in ("min_rows", "average"):
        if len(words[word]) > 1:
            raise ValueError(f"{word} must stand once in {name}; got {' and '.join(words[word])}.")
    return reduce(Dataset.with_value, words["value"], reduce(Dataset.with_class, words["of"], rows)), words


def _make_expression(name: str, metric: str, arguments: _Arguments) -> Rate | Ratio | WorstOf:
    """Return what a name makes of its arguments."""
    rows, words = _read_arguments(name, arguments)
    min_rows = check_min_rows(
        next((int(one) if one.isdecimal() and len(one) < _DIGITS else one for one in words["min_rows"]), 0)
    )
    if name == MACRO:
        return make_macro(metric, rows, min_rows)
    if name in FORMS:
        average = next((one if as_truth(one) is None else as_truth(one) for one in words["average"]), False)
        by, within = tuple(words["by"]), tuple(words["within"])
        return WorstRate(name, rows, metric, by, min_rows, within, average)  # type: ignore[arg-type] # it checks them
    if name in {FLIP_RATE, DISPARITY}:
        by, within = tuple(words["by"]), tuple(words["within"])
        return make_flip_rate(rows) if name == FLIP_RATE else WorstDisparity(rows, by, within)
    if name == CONFUSION:
        return make_confusion(rows, next(iter(words["called"]), None))
    if arguments.costs and name != COST:
        raise ValueError(f"Costs in braces are for {COST}({{sick->well: 20}}); {name} takes none.")
    if arguments.costs:
        return make_cost(rows, arguments.costs)
    return _make_rate(name, rows)


def _make_rate(name: str, rows: Dataset) -> Rate | Ratio:
    if name == TOTAL and TOTAL not in METRICS:
        return make_total(rows)
    if name in METRICS or name in RATIOS or name in ALIASES:
        return make_metric(name, rows)
    without = f"Unknown metric {COST!r} without costs: write them, as {COST}({{sick->well: 20}})."
    raise (
        UnknownName(without)
        if name == COST
        else unknown("metric", name, [*METRICS, *RATIOS, *OWN_WORDS, COST, TOTAL, *ALIASES])
    )


def parse_goal(text: str) -> Goal:
    """Read a goal from its text form; ``parse_goal(str(goal)) == goal`` for every goal.

    A goal without a dataset is about the rows that are judged, which are called ``train``.

    Examples
    --------
    >>> from counterpoise.goals import parse_goal
    >>> parse_goal("recall >= 0.7") == parse_goal("recall(train) >= 0.7")
    True
    >>> parse_goal("selection_rate(sex=F) >= 0.8 * selection_rate(sex=M)")
    <Goal positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)>
    >>> parse_goal("recall(country='New Zealand') >= 0.9")
    <Goal recall(country='New Zealand') >= 0.9>
    >>> parse_goal("selection_rate == 0.2")
    <Goal positive_rate == 0.2 +- 0.005>
    >>> parse_goal("precison(train) >= 0.9")
    Traceback (most recent call last):
    ...
    counterpoise.goals.UnknownName: Unknown metric 'precison'. Did you mean 'precision'? ...
    """
    reader = _Reader(text)
    left = reader.sum()
    sign = reader.take("<=", ">=", "==").text
    right = reader.sum()
    tolerance = reader.tolerance() if sign == "==" and reader.skip("+-") else TOLERANCE
    confidence = reader.confidence() if reader.next.text == "with" else None
    reader.expect_end()
    if not isinstance(left, Expression) and not isinstance(right, Expression):
        raise GoalSyntaxError(f"A goal needs a rate on at least one side, as in recall >= 0.9; got {text!r}.")
    if not isinstance(left, Expression):
        left, sign, right = right, MIRRORED.get(sign, sign), left
    goal = equal(left, right, tolerance=tolerance) if sign == "==" else make_goal(left, sign, right)
    return goal if confidence is None else goal.with_confidence(confidence)


def parse_rate(text: str) -> Rate:
    """Read a rate, such as an objective, from its text form.

    Examples
    --------
    >>> from counterpoise.goals import error_rate, false_positive_rate, parse_rate
    >>> rate = parse_rate("error_rate + 2 * false_positive_rate(mail)")
    >>> rate == error_rate("train") + 2 * false_positive_rate("mail")
    True
    """
    return as_objective(_read_sum(text))


def _read_sum(text: str) -> Any:
    reader = _Reader(text)
    rate = reader.sum()
    reader.expect_end()
    return rate


def as_goals(goals: Any) -> tuple[Goal, ...]:
    """Return goals, given any mixture of goals, their texts and nested lists of both, as a flat tuple.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, as_goals, eighty_percent_rule
    >>> groups = Dataset("train").by(sex=["F", "M"])
    >>> len(as_goals(["recall >= 0.9", eighty_percent_rule(groups)]))
    3
    """
    if isinstance(goals, Goal):
        return (goals,)
    if isinstance(goals, str):
        return (parse_goal(goals),)
    if not isinstance(goals, Iterable):
        hint = " For an equality write equal(rate, other); == compares them." if isinstance(goals, bool) else ""
        raise TypeError(f"goals must be goals or their texts, as in recall >= 0.9; got {goals!r}.{hint}")
    return tuple(goal for part in goals for goal in as_goals(part))


def has_goals(goals: Any) -> bool:
    """Return whether there are goals, of what ``as_goals`` takes, without reading their texts.

    Examples
    --------
    >>> from counterpoise.goals.parsing import has_goals
    >>> has_goals(["recall >= 0.9"]), has_goals([[], ()])
    (True, False)
    """
    return isinstance(goals, (Goal, str)) or any(has_goals(part) for part in goals)


def uses_deferral(one: Goal | Rate | Ratio) -> bool:
    """Return whether a goal or an objective counts deferred rows."""
    return any(all(count.positive is None for count in term.metric.counts) for term in terms_of(one))


def refuse_deferral(expressions: Iterable[Goal | Rate | Ratio]) -> None:
    """Refuse goals and objectives that use deferred rows, for models that decide about all rows."""
    for one in expressions:
        if uses_deferral(one):
            raise ValueError(
                f"{one} uses deferred rows, but no row is deferred: set deferral, the loss of a row that a "
                "person decides about, as in GoalClassifier(deferral=Deferral(0.2)); in a goals file it is a parameter "
                'of the method "goals", deferral = { cost = 0.2 }, on the command line --defer-cost.'
            )


def as_objective(objective: Any) -> Rate:
    """Return the rate that an estimator minimises, given a rate or its text; ratios are refused.

    Examples
    --------
    >>> from counterpoise.goals import as_objective
    >>> as_objective("error_rate + 2 * false_positive_rate(mail)")
    <error_rate + 2 * false_positive_rate(mail)>
    """
    rate = as_rate_or_ratio(objective)
    if isinstance(rate, Ratio):
        raise TypeError(
            f"{rate} is a ratio, which is not linear in the predictions, so it cannot be the objective here: "
            "GoalClassifier and MixtureClassifier can have it as theirs. Minimize error_rate, and set a goal such as "
            f"{rate} >= 0.9: a goal can be multiplied through."
        )
    return rate


def as_rate_or_ratio(objective: Any) -> Rate | Ratio:
    """Return the rate or ratio that an objective is, given either or its text.

    Examples
    --------
    >>> from counterpoise.goals.parsing import as_rate_or_ratio
    >>> as_rate_or_ratio("f1_score")
    <f1_score>
    """
    if isinstance(objective, str):
        objective = _read_sum(objective)
    if isinstance(objective, Ratio):
        return objective
    if isinstance(objective, WorstOf):
        raise TypeError(
            f"{objective} is the worst of several rates, which is not linear, so it cannot be the objective. Minimize "
            f"error_rate, and set a goal such as {objective} {objective.sense or '>='} 0.1."
        )
    rate = as_rate(objective)
    if rate is None or not rate.terms:
        raise TypeError(f"An objective must be a rate, as error_rate() is, or its text; got {objective!r}.")
    return rate
