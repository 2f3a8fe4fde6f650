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
    own, earlier = (rows.where(experiment=name) for name in (simulated.EXPERIMENT, simulated.EARLIER))
    if len(own) or len(earlier):
        parts.append(_SIMULATED)
    parts += [_simulated_table(own)] if len(own) else []
    parts += [_EARLIER, _simulated_table(earlier)] if len(earlier) else []
    if len(others := rows.where(experiment=beside_mapie.EXPERIMENT)):
        parts.append(_mapie_section(others))
    return parts


def _simulated_table(rows: ResultsTable) -> str:
    lines, worst = [], 0.0
    for kind in simulated.KINDS:
        draws, proven, violated = (
            sum(row.value for row in rows.where(learner=kind, quantity=name))
            for name in (simulated.DRAWS, simulated.PROVEN, simulated.VIOLATED)
        )
        if not draws:
            continue
        error = math.sqrt(_RISK * (1.0 - _RISK) / draws)
        worst = max(worst, (violated / draws - _RISK) / error)
        shares = [proven / draws, violated / draws, _RISK + _ERRORS * error]
        lines.append([kind, f"{draws:.0f}", *(f"{share:.4f}" for share in shares)])
    heads = ["goals", "populations", "proven", "proven and violated", "allowed"]
    return f"""The rule is {_word(worst <= _ERRORS)}.

{markdown_table(heads, lines)}"""


_RISK = 1.0 - simulated.CONFIDENCE
_SIMULATED = f"""## Simulated populations

Each population has its own base rates, groups and quality of scores, and {simulated.N_ROWS:,} selection rows are drawn
from it. Bounds are tighter by {simulated.TIGHTER} than what the rule of least error has, so that rules that pass are
near them. `confidence=Proof({simulated.CONFIDENCE})` promises that a rule is proven and misses a goal with a
probability of at most {_RISK:.1f}. The rule, written before the run: no more than that plus {_ERRORS:g} binomial
standard errors for any kind of goals. 2,000 populations of each kind are asked for."""
_EARLIER = """### Before the method's last change

These populations were run when proofs of goals that nearly any rule meets left a tenth of the rows to choose on; else
all is the same."""


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
rows as MAPIE's `BinaryClassificationController`, at the same confidence; MAPIE with its defaults, but without those of
its 100 thresholds above which there is no row: with them its correction for many thresholds proves no precision.
Errors are in percent of the population, over the draws in which both prove the goal. The rule, written before the run:
ours is not higher on average. Ours {ours:.2f}, MAPIE {mapie:.2f}: {_word(ours <= mapie)}.

{markdown_table(heads, lines)}"""


def _word(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


STUDY = Study(
    "proof", "how often proven goals are missed", wanted, measure, sections,
    (simulated.DATASET, *beside_mapie.DATASETS), n_seeds=20,
)  # fmt: skip
