"""The figures and the page of ``boosted_cvar``, as functions of its results tables."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.runs import ProgressCallback
from papers.boosted_cvar import networks
from papers.boosted_cvar import pattern as boosted_cvar_pattern
from papers.boosted_cvar.curves import LP_ALPHAS, METHODS, ROUND_ALPHAS
from papers.boosted_cvar.experiment import DATASETS, IMAGE_SETS, measure, wanted
from papers.boosted_cvar.losses import TRAINING, WARM_UP, WEIGHING
from papers.boosted_cvar.pattern import Pattern, coin, in_short, pattern_of
from papers.boosted_cvar.steps import section as step_section
from papers.drawing import panels, picture
from papers.markdown import markdown_table
from papers.results import Average, ResultRow, ResultsTable, read_rows, summarize
from papers.study import Study

SHOWN_ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
IMAGE_ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
_STYLES = {"ERM": ("#777777", "--"), "AdaBoost + Average": ("#d95f02", ":"), "AdaLPBoost": ("#1b7837", "-")}
_COMMAND = "python -m papers boosted-cvar"
_TIMES_MADE = "milliseconds a step and network", "minutes in all", "times ERM"
_SECONDS, _MANY = (WARM_UP, TRAINING, WEIGHING), 30  # models, for which the paper compares times


class WithImages(Study):
    """The tables, and beside them images, where a CUDA device and the images are there or their losses were kept."""

    def run(
        self,
        folder: Path,
        *,
        n_seeds: int | None = None,
        datasets: Sequence[str] | None = None,
        n_jobs: int | None = None,
        tell: ProgressCallback = lambda _progress: None,
    ) -> Path:
        """Measure the tables, boost images, and make ``networks.parquet`` of the losses that are kept in the folder."""
        table = super().run(folder, n_seeds=n_seeds, datasets=datasets, n_jobs=n_jobs, tell=tell)
        image_sets = [name for name in IMAGE_SETS if name in (datasets or self.datasets)]
        networks.reproduce(folder, image_sets, n_seeds=n_seeds or self.n_seeds, tell=tell)
        return table


def sections(tables: ResultsTable, folder: Path) -> list[str]:
    """Return the paragraphs of the page, with the images of ``networks.parquet``, and leave its figures there."""
    kept = folder / "networks.parquet"
    images = read_rows(kept) if kept.exists() else ResultsTable(())
    patterns = [measured_pattern(rows, *pair) for rows in (tables, images) for pair in pairs_of(rows)]
    parts = [_head(patterns), *_figures(tables, folder)]
    if patterns:
        parts.append(boosted_cvar_pattern.table(patterns))
    parts += [_section(tables, *pair) for pair in pairs_of(tables)]
    steps = folder / "steps.csv"
    if steps.exists():
        parts.append(step_section(read_rows(steps)))
    return [*parts, *_image_parts(images, folder)]


def pairs_of(rows: ResultsTable) -> list[tuple[str, str]]:
    """Return the data sets and learners that were measured together."""
    return sorted({(row.dataset, row.learner) for row in rows})


def measured_pattern(rows: ResultsTable, dataset: str, learner: str) -> Pattern:
    """Return what a run shows of the paper's figures."""
    return pattern_of(dataset, learner, _plain(rows, dataset, learner, "cvar"))


def _figures(rows: ResultsTable, folder: Path) -> list[str]:
    """Write the figures of the tables, and return what shows them."""
    pairs = pairs_of(rows)
    if not pairs:
        return []
    figures = {
        "cvar.png": ("Test CVaR zero-one loss against alpha, with 95 % intervals", _draw_curves(rows, pairs, "cvar")),
        "error.png": ("Average test loss against alpha", _draw_curves(rows, pairs, "error")),
        "rounds.png": ("Test CVaR of AdaLPBoost against the number of base models", _draw_rounds(rows, pairs)),
    }
    for name, (_, figure) in figures.items():
        figure.savefig(folder / name, dpi=110)
    return [picture(name, caption) for name, (caption, _) in figures.items()]


def _image_parts(rows: ResultsTable, folder: Path) -> list[str]:
    """Return the sections on images, after writing their figures."""
    if not len(rows):
        return [_NO_IMAGES]
    parts = [_IMAGES + _out_of_reach(rows)]
    for dataset, learner in pairs_of(rows):
        name = f"{_file_name(dataset, learner)}.png"
        _draw_images(rows, dataset, learner).savefig(folder / name, dpi=110)
        first = rows.where(dataset=dataset, learner=learner, method="ERM", quantity="error").rows
        caption = f"{dataset}, {learner}: test CVaR and average loss against alpha, and CVaR against base models"
        errors = sorted({row.seed: row.value for row in first}.items())
        told = ", ".join(f"{1 - error:.4f} (seed {seed})" for seed, error in errors)
        section = _section(rows, dataset, learner, IMAGE_ALPHAS)
        parts += [section, f"The test accuracy of ERM is {told}.", f"![{caption}]({name})\n\n*{caption}.*"]
    return parts + _time_parts(rows) + _schedule_parts(folder / "schedules.csv")


def training_seconds(rows: ResultsTable) -> dict[tuple[str, ...], dict[str, list[float]]]:
    """Return the seconds that were kept, by data set, learner, method and settings."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in rows:
        if row.quantity in _SECONDS:
            alpha = "" if row.alpha is None else f"{row.alpha:g}"
            key = (row.dataset, row.learner, row.method, alpha, *_numbers(row.settings, "T", "iterations", "at_once"))
            found.setdefault(key, {}).setdefault(row.quantity, []).append(row.value)
    return found


def times_of_erm(seconds: dict[str, list[float]]) -> float:
    """Return the time of the warm-up and 30 models with their weights, over that of the warm-up and one model."""
    warm_up, training, weighing = (float(np.mean(seconds[name])) for name in _SECONDS)
    return (warm_up + _MANY * (training + weighing)) / (warm_up + training)


def _time_parts(rows: ResultsTable) -> list[str]:
    """Return what training takes beside that of ERM, where seconds were kept."""
    found = training_seconds(rows)
    heads = ["data set", "learner", "method", "alpha", "models", "at once", "seeds", *_SECONDS, *_TIMES_MADE]
    lines = [[*key[:5], key[6], *_time_cells(seconds, *map(int, key[4:6]))] for key, seconds in sorted(found.items())]
    return [_TIMES, markdown_table(heads, lines, n_words=3)] if lines else []


def _numbers(settings: str, *names: str) -> list[str]:
    """Return the numbers that stand under these names in the settings of a row."""
    return [re.findall(rf"\b{name}=(\d+)", settings)[-1] for name in names]


def _time_cells(seconds: dict[str, list[float]], n_models: int, n_steps: int) -> list[str]:
    warm_up, training, weighing = (float(np.mean(seconds[name])) for name in _SECONDS)
    n_seeds = len(seconds[WARM_UP])
    made = 1000 * training / n_steps, n_seeds * (warm_up + n_models * training) / 60
    times = times_of_erm(seconds)
    return [
        str(n_seeds),
        *(f"{warm_up:.1f}", f"{training:.2f}", f"{weighing:.2f}", f"{made[0]:.2f}", f"{made[1]:.1f}", f"{times:.1f}"),
    ]


def _out_of_reach(rows: ResultsTable) -> str:
    """Say at which of the shown alphas no mixture is below the worst, where there are such."""
    least = {
        alpha: min((row.value for row in rows.where(quantity="cvar") if _same(row.alpha, alpha)), default=0.0)
        for alpha in IMAGE_ALPHAS
    }
    stuck = " and ".join(f"{alpha:g}" for alpha, value in least.items() if value >= 1.0 - _ROUNDING)
    if not stuck:
        return ""
    return (
        f" At alpha {stuck}\nevery mixture shown is at 1: as many of the test images are missed by all models that "
        "carry weight in it."
    )


def _file_name(dataset: str, learner: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", f"{dataset} {learner}".lower())


def _schedule_parts(table: Path) -> list[str]:
    """Return what plain training reaches by other schedules, where that was measured."""
    if not table.exists():
        return []
    by_settings: dict[str, dict[str, float]] = {}
    for row in read_rows(table).where(quantity="error"):
        by_settings.setdefault(row.settings, {})[row.split] = 1 - row.value
    lines = [[text, f"{found['validation']:.4f}", f"{found['test']:.4f}"] for text, found in by_settings.items()]
    heads = ["warm-up and first model", "validation accuracy", "test accuracy"]
    return [_SCHEDULES, markdown_table(heads, lines)]


_TIMES = f"""### Training times

Seconds of the device, an H200, of which a run has its share where several run at once; for the choice of weights, of
the host. Minutes in all are those of the device for all seeds, warm-ups included; Regularized LPBoost starts from the
warm-ups of AdaLPBoost, which it need not train again.
*Times ERM*: the warm-up and {_MANY} models with their weights, over the warm-up and one model. The paper has 3 to 6."""
_IMAGES = """## Images

Mixtures are chosen on 10 % of the training rows. WRN-28-1 on CIFAR-10 was boosted twice: by the schedule of the paper's
Appendix B, and from a longer warm-up with its own decay of the learning rate, after which the rounds start at a lower
rate. The paper's counterparts of the figures are 1(b) and 3 (left), 2(a) (middle) and 4(a) (right). Every number is in
`networks.parquet`, which is made of the models' zero-one losses in the files `losses_*.npz` beside this page."""

_SCHEDULES = """### What plain training reaches

The paper's schedule is 34 epochs in all: too short for this network. The same code with other schedules, one network
each (numbers in `schedules.csv`). By the validation rows alone that of the long warm-up above is one image of 5,000
behind the [best](../what_did_not_help.md) that takes no more steps. By the schedule of the paper both methods started
from a warm-up of their own."""

_NO_IMAGES = """## Images

No losses of networks on images were kept beside this page: `python -m papers boosted-cvar --datasets cifar10`
makes them where CIFAR-10 and a CUDA device are at hand."""


_HEAD = f"""# Boosted CVaR Classification

Made by `{_COMMAND}`; every number is in `results.parquet` beside this page, those of images in
`networks.parquet`. Zhai et al. (2021) print figures and no numbers; what is compared is their pattern: AdaLPBoost
follows the lower of ERM and AdaBoost + Average, far below ERM at small alpha and with it at large alpha, and
Regularized LPBoost nearly coincides with it."""
_ADALPBOOST = METHODS.index("AdaLPBoost")
_ROUNDING = 0.0005  # of the printed numbers


_CONTROLS = """The tail is bought with the average (second figure), and two controls belong beside it. *A fair coin*
decides without looking. *Realised*: CVaR is that of the expected losses, over the draws; once each decision is drawn, a
sample is right or wrong, and the CVaR of these losses is `min(1, error / alpha)` of the mixture's average error, as for
any fixed rule: above ERM's wherever the mixture errs more."""


def _head(patterns: list[Pattern]) -> str:
    in_words = f"\n{in_short(patterns)}" if patterns else ""
    return f"{_HEAD}{in_words}\n\n{_CONTROLS}"


def _section(rows: ResultsTable, dataset: str, learner: str, shown: tuple[float, ...] = SHOWN_ALPHAS) -> str:
    chosen = _plain(rows, dataset, learner, "cvar")
    n_seeds = len({row.seed for row in chosen})
    spread = f"mean over {n_seeds} seeds and half of the 95 % interval\n(Student)" if n_seeds > 1 else "one seed"
    alphas = [alpha for alpha in shown if any(_same(row.alpha, alpha) for row in chosen)]
    lines = []
    for method in METHODS:
        cells = [_cell([row.value for row in chosen if row.method == method and _same(row.alpha, a)]) for a in alphas]
        if any(cells):
            lines.append([method, *cells])
    errors = [row for row in _plain(rows, dataset, learner, "error") if row.method == METHODS[_ADALPBOOST]]
    lines.append(["a fair coin", *[f"{coin(dataset):.3f}"] * len(alphas)])
    drawn = [_cell([min(1.0, row.value / a) for row in errors if _same(row.alpha, a)]) for a in alphas]
    lines.append(["AdaLPBoost, realised", *drawn])
    head = f"## {dataset}, {learner}\n\nTest CVaR zero-one loss, {spread}; {_settings(chosen)}.\n\n"
    return head + markdown_table(["method", *(f"alpha {alpha:g}" for alpha in alphas)], lines)


def _settings(rows: list[Any]) -> str:
    """Return the settings of all methods, or of each method that has its own."""
    by_text: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: METHODS.index(row.method)):
        by_text.setdefault(row.settings, []).append(row.method)
    first, *others = by_text
    return "; ".join([f"`{first}`", *(f"{by_text[text][0]}: `{text}`" for text in others)])


def _plain(rows: ResultsTable, dataset: str, learner: str, quantity: str) -> list[Any]:
    """Return the rows with all base models: those against the number of them say so in their settings."""
    found = rows.where(dataset=dataset, learner=learner, quantity=quantity)
    return [row for row in found if "rounds=" not in row.settings]


def _same(alpha: float | None, other: float) -> bool:
    return alpha is not None and math.isclose(alpha, other, abs_tol=1e-9)  # alphas come from a grid of floats


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    row = [ResultRow("", "", "", "", seed, None, "", "", value) for seed, value in enumerate(values)]
    found: Average = summarize(row)[0]
    return f"{found.mean:.3f} ± {found.high - found.mean:.3f}" if len(values) > 1 else f"{found.mean:.3f}"


def _draw_curves(rows: ResultsTable, pairs: list[tuple[str, str]], quantity: str) -> Any:
    figure, axes = panels(len(pairs), size=_SIZE)
    for place, (dataset, learner) in zip(axes, pairs, strict=False):
        _curve_panel(place, _plain(rows, dataset, learner, quantity))
        place.set_title(f"{dataset}, {learner}")
    axes[0].set_ylabel(_AXES[quantity])
    _legend(figure, axes)
    return figure


_SIZE = (3.1, 2.9)  # of a panel, in inches
_AXES = {"cvar": "test CVaR zero-one loss", "error": "average test loss"}


def _curve_panel(place: Any, found: list[Any]) -> None:
    for method, (color, line) in _STYLES.items():
        _band(place, [row for row in found if row.method == method], color, line, method)
    _markers(place, [row for row in found if row.method == "Regularized LPBoost"])
    place.set_xlabel("alpha")


def _draw_images(rows: ResultsTable, dataset: str, learner: str) -> Any:
    figure, axes = panels(3, size=_SIZE)
    for place, quantity in zip(axes, _AXES, strict=False):
        _curve_panel(place, _plain(rows, dataset, learner, quantity))
        place.set_ylabel(_AXES[quantity])
    _round_panel(axes[2], rows, dataset, learner)
    axes[2].set_ylabel(_AXES["cvar"])
    _legend(figure, axes)
    return figure


def _legend(figure: Any, axes: list[Any]) -> None:
    """Put one legend below all panels, with everything that any of them shows."""
    shown = [pair for place in axes for pair in zip(*place.get_legend_handles_labels(), strict=True)]
    by_label = {label: handle for handle, label in shown}
    n_columns = min(len(by_label), 4)  # more do not fit beside each other
    figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=n_columns, frameon=False)


def _band(place: Any, rows: list[Any], color: str, line: str, label: str) -> None:
    found = summarize(rows, by=("alpha",))
    alphas = [float(one.group["alpha"]) for one in found]
    order = np.argsort(alphas)
    x = np.array(alphas)[order]
    mean, low, high = (np.array([getattr(one, name) for one in found])[order] for name in ("mean", "low", "high"))
    place.plot(x, mean, line, color=color, label=label)
    place.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)


def _markers(place: Any, rows: list[Any]) -> None:
    for alpha in LP_ALPHAS:
        values = [row.value for row in rows if _same(row.alpha, alpha)]
        if values:
            label = "Regularized LPBoost" if alpha == min(row.alpha for row in rows) else None
            place.plot([alpha], [np.mean(values)], "D", color="#7570b3", markersize=4, label=label)


def _draw_rounds(rows: ResultsTable, pairs: list[tuple[str, str]]) -> Any:
    figure, axes = panels(len(pairs), size=_SIZE)
    for place, (dataset, learner) in zip(axes, pairs, strict=False):
        _round_panel(place, rows, dataset, learner)
        place.set_title(f"{dataset}, {learner}")
    axes[0].set_ylabel(_AXES["cvar"])
    _legend(figure, axes)
    return figure


def _round_panel(place: Any, rows: ResultsTable, dataset: str, learner: str) -> None:
    found = [row for row in rows.where(dataset=dataset, learner=learner) if "rounds=" in row.settings]
    for alpha, marker in zip(ROUND_ALPHAS, "osD", strict=True):
        means: dict[int, list[float]] = {}
        for row in found:
            if row.alpha == alpha:
                means.setdefault(int(row.settings.rsplit("rounds=", 1)[1]), []).append(row.value)
        counts = sorted(means)
        place.plot(counts, [np.mean(means[count]) for count in counts], marker=marker, label=f"alpha {alpha:g}")
    place.set_xlabel("base models")


STUDY = WithImages(
    "boosted-cvar",
    "Zhai, Dan, Suggala, Kolter and Ravikumar 2021",
    wanted,
    measure,
    sections,
    DATASETS,
    n_seeds=5,
)
