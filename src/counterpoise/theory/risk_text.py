"""Risks from their text, as in a goals file: ``0.5 * Mean() + 0.5 * CVaR(0.1)``."""

import ast
import math
import re
from collections.abc import Collection
from typing import Any

from counterpoise._base.text import did_you_mean, shown
from counterpoise.theory.risks import KL, ChiSquare, CVaR, EmpiricalLikelihood, Mean, MeanVariance, Risk, WorstGroup

_NAME = re.compile(r"\b\w++(?=\s*\()")  # each word is looked at once, however long it is
_KINDS = {kind.__name__: kind for kind in (Mean, CVaR, WorstGroup, EmpiricalLikelihood, KL, ChiSquare, MeanVariance)}


def is_risk_text(text: str) -> bool:
    """Return whether a text is a risk: whether it names one where a rate has its name."""
    return any(name in _KINDS for name in _NAME.findall(text))


def is_nearly_risk_text(text: str, metrics: Collection[str]) -> bool:
    """Return whether a text was meant as a risk: whether a name in it is nearly that of one, and of no metric."""
    names = [text, *_NAME.findall(text)]
    return any(did_you_mean(name, _KINDS) and not did_you_mean(name, metrics) for name in names)


def parse_risk(text: str) -> Risk:
    """Read a risk from its text form; ``parse_risk(repr(risk)) == risk`` for every risk of ours.

    Examples
    --------
    >>> from counterpoise.theory.risk_text import parse_risk
    >>> parse_risk("0.5 * Mean() + 0.5 * CVaR(0.1)")
    0.5 * Mean() + 0.5 * CVaR(alpha=0.1)
    >>> parse_risk("EmpiricalLikelihood('calibrated', confidence=0.95)")
    EmpiricalLikelihood(radius='calibrated', confidence=0.95)
    """
    try:
        tree = ast.parse(f"({text.strip()}\n)", mode="eval").body  # lines may be broken anywhere
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _unreadable(text) from None
    try:
        return _risk(tree, text)
    except RecursionError:  # of very many risks
        raise _unreadable(text) from None


def _risk(node: ast.expr, text: str) -> Risk:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _risk(node.left, text) + _risk(node.right, text)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _risk(node.right, text) * _factor(node.left, text)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise _unreadable(text)
    kind = _KINDS.get(node.func.id)
    if kind is None:
        raise ValueError(f"Unknown risk {node.func.id!r} in {shown(text)}.{did_you_mean(node.func.id, _KINDS)}")
    if any(word.arg is None for word in node.keywords):
        raise _unreadable(text)
    keywords = {str(word.arg): _constant(word.value, text) for word in node.keywords}
    try:
        return kind(*(_constant(value, text) for value in node.args), **keywords)
    except TypeError as error:  # arguments that it does not take
        problem = (str(error).partition("() ")[2] or str(error)).rstrip(".")
        raise ValueError(f"{node.func.id} in {shown(text)}: {problem}.") from error


def _factor(node: ast.expr, text: str) -> float:
    factor = _constant(node, text)
    if isinstance(factor, bool) or not isinstance(factor, (int, float)):
        raise _unreadable(text)
    return factor


def _constant(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name) and node.id == "inf":  # as an infinite radius is written
        return math.inf
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _unreadable(text) from None


def _unreadable(text: str) -> ValueError:
    return ValueError(f"A risk reads like 'CVaR(0.1)' or '0.5 * Mean() + 0.5 * KL(0.1)'; got {shown(text)}.")
