"""Of the mixtures of models with no more risk, one that leaves fewer rows to a draw.

A row is drawn where the models of a mixture do not all answer it alike. A solver stops at any mixture within its gap,
and many of those give small shares to models that do not lower the risk, each of which draws for the rows where it
differs. The number of drawn rows is no convex function of the mixture, so it is lowered in steps, as sparse solutions
are found by reweighting (Candes, Wakin and Boyd 2008)::

    m_i      = the likeliest loss of row i, and p_i the probability of another one
    mixture  = argmin over mixtures of  sum_i w_i / (p_i + 0.01) * P(loss of row i is not m_i)
               subject to the goals and  risk(losses @ mixture) <= the risk of the mixture at the start

Each step is a linear program over the models. The risk is replaced by its cuts, one more wherever it is exceeded. The
result is a local optimum: no more risk, and no more drawn rows, than at the start.
"""

from typing import Any

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray
from counterpoise.rules.program import Choice, Program, drop_slivers, excess_of
from counterpoise.solvers import minimize_cvar
from counterpoise.solvers.linear_program import FEASIBLE

_MOST_STEPS = 5
_MOST_CUTS = 20  # in all: a mixture that needs more of them is about the only one with its risk
_SOFT = 0.01  # a row that is drawn with a smaller probability weighs hardly more
_EXACT = 1e-9  # gap of the linear programs, whose objective is at most 1


def drawn_rows(losses: Any, mixture: FloatArray) -> BoolArray:
    """Return for which rows a draw decides what the loss is.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.fewest_draws import drawn_rows
    >>> drawn_rows(np.array([[0, 1], [1, 1], [0, 0]]), np.array([0.5, 0.5])).tolist()
    [True, False, False]
    """
    used = losses[:, mixture > 0]
    return np.asarray(used.min(axis=1) != used.max(axis=1))


def with_fewest_draws(program: Program, choice: Choice) -> Choice:
    """Return a mixture of a program of models with no more risk, that draws for no more rows.

    Parameters
    ----------
    program : Program
        Of a ``ModelFamily``, with all limits.
    choice : Choice
        The mixture to start at, whose lower bound stays.

    Returns
    -------
    Choice
    """
    losses, mass = program.family.selection.losses, program.family.mass
    risk, rows = program.objective.risk, program.objective.losses
    value = float(risk.value(rows.values @ choice.mixture, rows.sample_weight))
    best, fewest = choice, float(mass @ drawn_rows(losses, choice.mixture))
    cuts: list[FloatArray] = []
    for _ in range(_MOST_STEPS):
        if fewest == 0:
            break
        likeliest, other = _likeliest(losses, best.mixture)
        weight = mass / (other + _SOFT)
        cost = (weight / weight.sum()) @ (losses != likeliest[:, None])
        mixture = _cheapest(program, cost, value, cuts)
        if mixture is None:
            break
        drawn = float(mass @ drawn_rows(losses, mixture))
        if drawn >= fewest:
            break
        reached = program.objective.shift + float(risk.value(rows.values @ mixture, rows.sample_weight))
        best, fewest = best._replace(mixture=mixture, value=reached, lower=min(best.lower, reached)), drawn
    return best


def _likeliest(losses: Any, mixture: FloatArray) -> tuple[Any, FloatArray]:
    """Return the likeliest loss of each row, and the probability of another one."""
    values = np.unique(losses)
    shares = np.column_stack([(losses == value) @ mixture for value in values])
    return values[shares.argmax(axis=1)], np.maximum(1.0 - shares.max(axis=1), 0.0)


def _cheapest(program: Program, cost: FloatArray, most: float, cuts: list[FloatArray]) -> FloatArray | None:
    """Return the mixture of least cost within the limits and a most risk; None after too many cuts, which are added."""
    (values, sample_weight), risk, _ = program.objective
    n_models, limits = cost.size, {} if program.limits is None else program.limits.as_limits()
    rows, bounds = limits.get("rows", np.empty((0, n_models))), limits.get("bounds", np.empty(0))
    scale = limits.get("row_scale", np.empty(0))
    unit = float(np.ptp(values)) or 1.0
    while len(cuts) <= _MOST_CUTS:
        among: dict[str, Any] = {
            "rows": np.vstack([rows, *cuts]),
            "bounds": np.append(bounds, [most] * len(cuts)),
            "row_scale": np.append(scale, [unit] * len(cuts)),
        }
        among = among if among["bounds"].size else {}
        found = minimize_cvar(cost[None], 1.0, tol=_EXACT, **among).mixture
        mixture = drop_slivers(found)
        if among and excess_of(mixture, **among) > max(excess_of(found, **among), FEASIBLE):
            mixture = found  # a goal needs the least of shares
        expected = values @ mixture
        reached, slope = float(risk.value(expected, sample_weight)), risk.subgradient(expected, sample_weight)
        if reached <= most + FEASIBLE * unit:
            return mixture
        # On the simplex the constant of a cut is part of every entry of its slope.
        cuts.append(slope @ values + (reached - float(slope @ expected)))
    return None
