"""Proofs: how often rules that are proven miss a goal, and what a proof costs beside MAPIE; blocks of the table."""

import math
from collections.abc import Sequence
from typing import Any

from papers.experiments import Blocks, Experiment
from papers.markdown import markdown_table
from papers.promises import beside_mapie, simulated
from papers.promises.watching import total
from papers.tables import ResultRow, ResultsTable

_N_MAPIE = 4  # blocks of draws
_ERRORS = 2.0
_RISK = 1.0 - simulated.CONFIDENCE


def wanted(datasets: Sequence[str], n_blocks: int) -> list[Any]:
    """Return the blocks of populations, and those of draws beside MAPIE."""
    own = simulated.wanted(n_blocks) if simulated.DATASET in datasets else []
    beside = beside_mapie.wanted(min(n_blocks, _N_MAPIE))
    return [*own, *(block for block in beside if block.dataset in datasets)]


def measure(block: Any) -> list[ResultRow]:
    """Return the rows of a block of either kind."""
    return beside_mapie.measure(block) if isinstance(block, beside_mapie.Block) else simulated.measure(block)


def blocks(rows: ResultsTable) -> Blocks:
    """Return both tables."""
    lines = []
    for kind in simulated.KINDS:
        own = rows.where(experiment=simulated.EXPERIMENT, learner=kind)
        draws, proven, violated = (total(own, name) for name in (simulated.DRAWS, simulated.PROVEN, simulated.VIOLATED))
        if draws:
            allowed = _RISK + _ERRORS * math.sqrt(_RISK * (1.0 - _RISK) / draws)
            shares = [f"{share:.3f}" for share in (proven / draws, violated / draws, allowed)]
            lines.append([kind, f"{draws:.0f}", *shares])
    found = {}
    if lines:
        heads = ["goals", "populations", "proven", "proven and violated", "allowed"]
        found["simulated"] = markdown_table(heads, lines)
    beside = rows.where(experiment=beside_mapie.EXPERIMENT)
    return found | ({"beside MAPIE": _beside(beside)} if len(beside) else {})


def _beside(rows: ResultsTable) -> str:
    lines = []
    for who in (beside_mapie.OURS, beside_mapie.MAPIE):
        own = rows.where(method=who)
        draws, both = total(own, beside_mapie.DRAWS), total(own, beside_mapie.BOTH)
        shares = [total(own, name) / draws for name in (beside_mapie.PROVEN, beside_mapie.VIOLATED)]
        error = 100 * total(own, beside_mapie.COST) / both if both else math.nan
        lines.append([who, f"{draws:.0f}", *(f"{share:.3f}" for share in shares), f"{error:.2f}"])
    heads = ["method", "draws", "proven", "proven and violated", "error where both prove, %"]
    return markdown_table(heads, lines)


EXPERIMENT = Experiment(
    "proof", "how often proven goals are missed", wanted, measure, blocks,
    (simulated.DATASET, *beside_mapie.DATASETS), 20,
)  # fmt: skip
