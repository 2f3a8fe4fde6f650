"""The page of ``proof``, as a function of its results table."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from papers.markdown import markdown_table
from papers.proof import beside_mapie, simulated
from papers.results import ResultRow, ResultsTable
from papers.study import Study

_COMMAND = "python -m papers proof --output docs/results/proof"
_N_MAPIE = 4  # blocks of draws
_ERRORS = 2.0


def wanted(datasets: Sequence[str], n_blocks: int) -> list[Any]:
    """Return the blocks of populations, and those of draws beside MAPIE."""
    own = simulated.wanted(n_blocks) if simulated.DATASET in datasets else []
    return [*own, *(block for block in beside_mapie.wanted(_N_MAPIE) if block.dataset in datasets)]


def measure(block: Any) -> list[ResultRow]:
    """Return the rows of a block of either kind."""
    return beside_mapie.measure(block) if isinstance(block, beside_mapie.Block) else simulated.measure(block)


def sections(rows: ResultsTable, _folder: Path) -> list[str]:
    """Return the paragraphs of the page."""
    parts = [
        f"""# Proofs of goals

Made by `{_COMMAND}`; every count is in `results.parquet` beside this page."""
    ]
    if len(own := rows.where(experiment=simulated.EXPERIMENT)):
        parts.append(_simulated_section(own))
    if len(others := rows.where(experiment=beside_mapie.EXPERIMENT)):
        parts.append(_mapie_section(others))
    return parts


def _simulated_section(rows: ResultsTable) -> str:
    lines, worst, risk = [], 0.0, 1.0 - simulated.CONFIDENCE
    for kind in simulated.KINDS:
        draws, proven, violated = (
            sum(row.value for row in rows.where(learner=kind, quantity=name))
            for name in (simulated.DRAWS, simulated.PROVEN, simulated.VIOLATED)
        )
        if not draws:
            continue
        error = math.sqrt(risk * (1.0 - risk) / draws)
        worst = max(worst, (violated / draws - risk) / error)
        shares = [proven / draws, violated / draws, risk + _ERRORS * error]
        lines.append([kind, f"{draws:.0f}", *(f"{share:.4f}" for share in shares)])
    heads = ["goals", "populations", "proven", "proven and violated", "allowed"]
    return f"""## Simulated populations

Each population has its own base rates, groups and quality of scores, and {simulated.N_ROWS:,} selection rows are drawn
from it. Bounds are tighter by {simulated.TIGHTER} than what the rule of least error has, so that rules that pass are
near them. `confidence=Proof({simulated.CONFIDENCE})` promises that a rule is proven and misses a goal with a
probability of at most {risk:.1f}. The rule, written before the run: no more than that plus {_ERRORS:g} binomial
standard errors for any kind of goals: {_word(worst <= _ERRORS)}.

{markdown_table(heads, lines)}"""


def _mapie_section(rows: ResultsTable) -> str:
    lines, totals, n_both = [], {beside_mapie.OURS: 0.0, beside_mapie.MAPIE: 0.0}, 0.0
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for learner in dict.fromkeys(row.learner for row in rows.where(dataset=dataset)):
            cell = rows.where(dataset=dataset, learner=learner)
            shares, costs = [], []
            for who in totals:
                own = {
                    name: sum(row.value for row in cell.where(method=who, quantity=name))
                    for name in (
                        beside_mapie.DRAWS, beside_mapie.PROVEN, beside_mapie.VIOLATED, beside_mapie.BOTH,
                        beside_mapie.COST,
                    )
                }  # fmt: skip
                draws, both = own[beside_mapie.DRAWS], own[beside_mapie.BOTH]
                shares += [own[beside_mapie.PROVEN] / draws, own[beside_mapie.VIOLATED] / draws]
                costs.append(100 * own[beside_mapie.COST] / both if both else math.nan)
                totals[who] += 100 * own[beside_mapie.COST]
            n_both += both
            metric, size = learner.split(", ")
            texts = ["-" if math.isnan(share) else f"{share:.2f}" for share in (*shares, *costs)]
            lines.append([dataset, f"{int(size):,}", metric, f"{draws:.0f}", *texts])
    ours, mapie = (total / max(n_both, 1.0) for total in totals.values())
    heads = ["data", "rows", "floor of", "draws", "proven", "and violated", "MAPIE proves", "and violated"]
    heads += ["error, ours", "error, MAPIE"]
    return f"""## Beside MAPIE

A floor of one metric, {beside_mapie.OVER} above what the model has at the usual selection rate, on the same scores and
rows as MAPIE's `BinaryClassificationController`, at the same confidence; MAPIE with its defaults. Errors are in percent
of the population, over the draws in which both prove the goal. The rule, written before the run: ours is not higher on
average. Ours {ours:.2f}, MAPIE {mapie:.2f}: {_word(ours <= mapie)}.

{markdown_table(heads, lines)}"""


def _word(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


STUDY = Study(
    "proof", "how often proven goals are missed", wanted, measure, sections,
    (simulated.DATASET, *beside_mapie.DATASETS), n_seeds=20,
)  # fmt: skip
