"""Of the mixtures of models with no more risk, one that leaves fewer rows to a draw.

A row is drawn where the models of a mixture do not all answer it alike. A solver stops at any mixture within its gap,
and many of those give small shares to models that do not lower the risk, each of which draws for the rows where it
differs. The number of drawn rows is no convex function of the mixture, so it is lowered in steps, as sparse solutions
are found by reweighting (Candes, Wakin and Boyd 2008)::

    m_i      = the likeliest loss of row i, and p_i the probability of another one
    mixture  = argmin over mixtures of  sum_i w_i / (p_i + 0.01) * P(loss of row i is not m_i)
               subject to the goals and  risk(losses @ mixture) <= the risk of the mixture at the start

Each step is a linear program over the models. The risk is replaced by its cuts, first those that the solver ended with,
then one more wherever it is exceeded. The result is a local optimum: no more risk, and no more drawn rows, than at the
start.
"""

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray
from counterpoise.rules.program import Choice, Program, drop_slivers, excess_of
from counterpoise.solvers.linear_program import FEASIBLE, solve_linear_program

_MOST_STEPS = 5
_MOST_CUTS = 10  # in all: a mixture that needs more of them is about the only one with its risk
_PART = 4096  # rows that are compared at once
_SOFT = 0.01  # a row that is drawn with a smaller probability weighs hardly more


def drawn_rows(losses: AnyArray, mixture: FloatArray) -> BoolArray:
    """Return for which rows a draw decides what the loss is.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.fewest_draws import drawn_rows
    >>> drawn_rows(np.array([[0, 1], [1, 1], [0, 0]]), np.array([0.5, 0.5])).tolist()
    [True, False, False]
    """
    first, *others = np.flatnonzero(mixture > 0).tolist()
    is_drawn = np.zeros(len(losses), dtype=np.bool_)
    for other in others:  # a column at a time: all at once would be a copy of the losses
        is_drawn |= losses[:, other] != losses[:, first]
    return is_drawn


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
    mass, (rows, risk, shift) = program.family.mass, program.objective
    losses: AnyArray = program.family.selection.losses
    most = float(rows.cut(risk, choice.mixture) @ choice.mixture)
    best, fewest, cuts = choice, float(mass @ drawn_rows(losses, choice.mixture)), rows.cuts(risk)
    n_known = len(cuts)
    for _ in range(_MOST_STEPS):
        if fewest == 0:
            break
        mixture = _cheapest(program, _cost_of_draws(losses, mass, best.mixture), most, cuts, _MOST_CUTS + n_known)
        if mixture is None:
            break
        drawn = float(mass @ drawn_rows(losses, mixture))
        if drawn >= fewest:
            break
        reached = shift + float(rows.cut(risk, mixture) @ mixture)
        best, fewest = best._replace(mixture=mixture, value=reached, lower=min(best.lower, reached)), drawn
    return best


def _cost_of_draws(losses: AnyArray, mass: FloatArray, mixture: FloatArray) -> FloatArray:
    """Return how much each model differs from the likeliest losses, where rows with a sure loss count most."""
    used = np.flatnonzero(mixture)
    likely = losses[:, used]
    values = np.unique(likely)
    shares = np.column_stack([(likely == value) @ mixture[used] for value in values])
    likeliest, other = values[shares.argmax(axis=1)], np.maximum(1.0 - shares.max(axis=1), 0.0)
    weight = mass / (other + _SOFT)
    weight /= weight.sum()
    parts = [slice(first, first + _PART) for first in range(0, len(losses), _PART)]  # no copy of all losses
    return sum(
        (weight[part] @ (losses[part] != likeliest[part, None]).astype(np.float64) for part in parts),
        start=np.zeros(mixture.size),
    )


def _cheapest(
    program: Program, cost: FloatArray, most: float, cuts: list[FloatArray], most_cuts: int
) -> FloatArray | None:
    """Return the mixture of least cost within the limits and a most risk; None after too many cuts, which are added."""
    rows, risk, _ = program.objective
    n_models, limits = cost.size, {} if program.limits is None else program.limits.as_limits()
    unit = float(np.ptp(rows.values)) or 1.0
    scaled, bounds = np.empty((0, n_models)), np.empty(0)
    if limits:
        scaled, bounds = limits["rows"] / limits["row_scale"][:, None], limits["bounds"] / limits["row_scale"]
    while len(cuts) <= most_cuts:
        upper = np.concatenate([[1.0], bounds + FEASIBLE / 2, np.full(len(cuts), most / unit)])
        found = solve_linear_program(
            cost,
            np.vstack([np.ones(n_models), scaled, *(cut / unit for cut in cuts)]),
            (np.append(1.0, np.full(upper.size - 1, -np.inf)), upper),
            lower=np.zeros(n_models),
            upper=np.ones(n_models),
        )
        if found is None:
            return None
        mixture = drop_slivers(found.point)
        if limits and excess_of(mixture, **limits) > FEASIBLE:  # a goal needs the least of shares
            mixture = np.maximum(found.point, 0.0)
        cut = rows.cut(risk, mixture)
        if cut @ mixture <= most + FEASIBLE * unit:
            return mixture
        cuts.append(cut)
    return None
