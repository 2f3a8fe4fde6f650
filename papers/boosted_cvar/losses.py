"""Results of ``networks`` as functions of its kept losses, made on any machine."""

from collections.abc import Iterator

import numpy as np

from counterpoise.metrics import cvar_loss
from counterpoise.solvers import minimize_cvar
from papers.boosted_cvar.curves import ERROR_ALPHAS, NAME, Losses, against_rounds, curves
from papers.kept_losses import KeptLosses
from papers.tables import ResultRow

MODELS = "models"
WARM_UP, TRAINING, WEIGHING = "warm-up seconds", "training seconds a model", "weighing seconds a model"


def result_rows(kept: KeptLosses) -> Iterator[ResultRow]:
    """Yield the measurements that follow from kept losses, mixtures chosen on the validation rows."""
    about = kept.settings
    trained = "AdaLPBoost" if about["alpha"] is None else "Regularized LPBoost"
    losses = Losses(kept.losses("validation"), kept.losses("test"))
    step = f"eta={about['eta']:g}" if about["alpha"] is None else f"beta={about['beta']:g}"
    sizes = "/".join(str(kept.sizes[name]) for name in ("train", "validation", "test"))
    settings = f"T={kept.n_rounds} {step} rows={sizes} {about['schedule']}"

    def row(method: str, alpha: float | None, quantity: str, value: float, extra: str = "") -> ResultRow:
        text = f"{settings}{extra}"
        names = (NAME, about["dataset"], about["learner"], method, about["seed"])
        return ResultRow(*names, alpha, quantity, "test", float(value), text)

    yield row(trained, about["alpha"], MODELS, kept.n_rounds)
    for quantity, seconds in mean_seconds(kept).items():
        at_once = f" at_once={max(one.n_at_once for one in kept.took)}"
        yield row(trained, about["alpha"], quantity, seconds, at_once)
    if about["alpha"] is not None:
        mixture = minimize_cvar(losses.chosen_on, about["alpha"]).mixture
        value = cvar_loss(losses.judged_on, about["alpha"], mixture=mixture)
        yield row(trained, about["alpha"], "cvar", value)
        return
    for method, alpha, cvar, error in curves(losses):
        yield row(method, alpha, "cvar", cvar)
        if alpha in ERROR_ALPHAS:
            yield row(method, alpha, "error", error)
    for n_rounds, alpha, cvar in against_rounds(losses):
        yield row("AdaLPBoost", alpha, "cvar", cvar, f" rounds={n_rounds}")


def mean_seconds(kept: KeptLosses) -> dict[str, float]:
    """Return what of the times of a run is known: shares of the device for training, and of the host for weights."""
    known = [one for one in kept.took if np.isfinite(one.seconds)]
    if not known or not np.isfinite(kept.warmup_seconds):
        return {}
    training, weighing = (
        float(np.mean(part)) for part in zip(*((one.on_device, one.weighing) for one in known), strict=True)
    )
    return {WARM_UP: kept.warmup_seconds, TRAINING: training, WEIGHING: weighing}
