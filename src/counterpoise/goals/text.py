"""The text form of rates and goals.

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
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from counterpoise._base.checks import check_confidence
from counterpoise.goals.arguments import Arguments
from counterpoise.goals.class_rates import pair_of
from counterpoise.goals.expressions import Expression, Rate, Ratio, as_rate
from counterpoise.goals.phrases import FORMS
from counterpoise.goals.ranges import MIRRORED, between
from counterpoise.goals.rows import RESTRICTIONS, Dataset
from counterpoise.goals.terms import MACRO
from counterpoise.goals.wording import NUMBER, QUOTED, WORD, UnknownName, unknown, without_quotes

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
