"""One rule of scores as SQL: a ``CASE`` expression that any database computes from the columns of a table.

Names and texts are quoted as standard SQL has them. A row that ``apply`` refuses gets NULL: one without a score, or of
a group that has no threshold.
"""

import math
from typing import Any

from counterpoise.goals.tables import MISSING
from counterpoise.rules.scores.table import OTHERS
from counterpoise.runs.errors import DataError
from counterpoise.runs.rule_file import RuleFile

_FEW_DIGITS = 15  # of a decimal number, which every database reads as the same double
_BITS = 53  # of a double
_STEP = 60  # bits of a whole number that every database reads exactly, as it is a power of two
_LARGEST = "1E308"  # NaN and infinite scores are beyond it in each database, or compare with nothing


def rule_sql(rules: RuleFile) -> str:
    """Return the decision of one rule as an expression of SQL.

    Parameters
    ----------
    rules : RuleFile
        Of one rule: draws need a hash, for which no function is standard.

    Returns
    -------
    str

    Examples
    --------
    >>> from counterpoise.runs.rule_file import RuleFile
    >>> from counterpoise.runs.rule_sql import rule_sql
    >>> rule = {"share": 1.0, "from": "0" * 16, "score": "p", "thresholds": {"sex=F": 0.5, "sex=M": 0.25}}
    >>> print(rule_sql(RuleFile(positive="yes", negative="no", by=["sex"], key="0" * 16, rules=[rule])))
    CASE
      WHEN CAST("sex" AS VARCHAR(1000)) = 'F' THEN
        CASE WHEN "p" > 0.5E0 AND "p" <= 1E308 THEN 'yes' WHEN "p" <= 0.5E0 AND "p" >= -1E308 THEN 'no' END
      WHEN CAST("sex" AS VARCHAR(1000)) = 'M' THEN
        CASE WHEN "p" > 0.25E0 AND "p" <= 1E308 THEN 'yes' WHEN "p" <= 0.25E0 AND "p" >= -1E308 THEN 'no' END
    END
    """
    check_one_rule(len(rules.rules))
    rule = rules.rules[0]
    decisions = {}
    for group in rules.groups:
        upper = rule.thresholds[group]
        decisions[group] = _decision(rules, rule.score, upper, upper if rule.lower is None else rule.lower[group])
    if not rules.by:
        (decision,) = decisions.values()
        return decision
    lines = [f"  WHEN {_condition(rules.by, group)} THEN\n    {decision}" for group, decision in decisions.items()]
    return "\n".join(["CASE", *lines, "END"])


def check_one_rule(n_rules: int) -> None:
    """Refuse drawn rules."""
    if n_rules > 1:
        raise DataError(
            f"SQL is written for one rule; one of these {n_rules} is drawn for each person, by a hash that is not part "
            "of standard SQL. Choose with --decision fixed."
        )


def _decision(rules: RuleFile, score: str, upper: float, lower: float) -> str:
    column, labels = _name(score), [rules.positive, rules.negative, rules.deferred]
    if rules.deferred is not None and len({isinstance(label, str) for label in labels}) > 1:
        labels = list(map(str, labels))  # the branches of an expression have one type
    positive, negative, deferred = map(_literal, labels)
    above, below = f"{column} <= {_LARGEST}", f"{column} >= -{_LARGEST}"
    middle = "" if lower == upper else f" WHEN {column} > {_number(lower)} AND {above} THEN {deferred}"
    return (
        f"CASE WHEN {column} > {_number(upper)} AND {above} THEN {positive}{middle} "
        f"WHEN {column} <= {_number(lower)} AND {below} THEN {negative} END"
    )


def _condition(by: list[str], group: str) -> str:
    """Return what is true of the rows of a group, such as ``sex=F, region=north``."""
    if group == OTHERS:
        raise DataError("SQL is written for groups by name; these rules pool others. Choose without pooled groups.")
    rest, values = group, list[str]()
    for column in by[:0:-1]:
        rest, found, value = rest.rpartition(f", {column}=")
        values = [value, *values]
        if not found or f", {column}=" in rest:
            raise DataError(f"The group {group!r} has a value that reads like a column of by. Rename it first.")
    values = [rest.removeprefix(f"{by[0]}="), *values]
    return " AND ".join(_has_value(column, value) for column, value in zip(by, values, strict=True))


def _has_value(column: str, value: str) -> str:
    text = f"CAST({_name(column)} AS VARCHAR(1000))"
    return f"({_name(column)} IS NULL OR {text} = '')" if value == MISSING else f"{text} = {_literal(value)}"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _literal(label: Any) -> str:
    if isinstance(label, bool):
        return str(label).upper()
    return "'" + label.replace("'", "''") + "'" if isinstance(label, str) else str(label)


def _number(value: float) -> str:
    """Return a double that every database reads as the same one: with few digits, or as a quotient of whole numbers."""
    if abs(value) >= float(_LARGEST):  # nobody, or everybody
        return _LARGEST if value > 0 else f"-{_LARGEST}"
    text = repr(value).upper()
    digits = text.partition("E")[0].strip("-").replace(".", "").strip("0")
    if len(digits) <= _FEW_DIGITS:
        return text if "E" in text else f"{text}E0"
    fraction, exponent = math.frexp(value)
    number, halvings = int(math.ldexp(fraction, _BITS)), _BITS - exponent
    steps = [f" / {1 << _STEP}E0"] * (halvings // _STEP) + [f" / {1 << halvings % _STEP}E0"]
    if halvings < 0:
        steps = [f" * {1 << _STEP}E0"] * (-halvings // _STEP) + [f" * {1 << -halvings % _STEP}E0"]
    return f"({number}E0{''.join(steps)} /* {value!r} */)"
