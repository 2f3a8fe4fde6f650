"""What can be taken away from a page: a goals file, and, written where the server runs, a model or a run with a report.

All of them are of the mixture that the page shows: nothing is chosen anew for them. A model holds the scores and labels
that it was chosen on, and the key of its draws: it is never sent to a page.
"""

import copy
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from counterpoise.explorer.session import Session
from counterpoise.explorer.setting import Setting
from counterpoise.mixtures.options import kind_of_decision

GOALS, MODEL, REPORT = "goals", "model", "report"
_MOST = 1000  # files of one name


class Exporter:
    """Exports of a session whose model stands alone.

    Parameters
    ----------
    session : Session
    folder : path, optional
        Where models go. Default: none are written.
    """

    def __init__(self, session: Session, folder: str | Path | None = None) -> None:
        self.session, self.folder = session, None if folder is None else Path(folder)

    @property
    def kinds(self) -> list[str]:
        """Return what can be exported."""
        return [GOALS] if self.folder is None else [GOALS, MODEL]

    def export(self, what: Any, setting: Setting) -> dict[str, Any]:
        """Return the text of a goals file, or where a model or report was written."""
        if what not in self.kinds:
            raise ValueError(f"What can be exported here is {', '.join(self.kinds)}; got {str(what)[:40]!r}.")
        made = {GOALS: self.goals_file, MODEL: self.model_file, REPORT: self.report}[what](setting)
        return {"what": what, **made}

    def model(self, setting: Setting) -> Any:
        """Return the model whose mixture the page shows, with what stands before it, as a run's model has it."""
        return self._whole(self._chosen(setting))

    def _chosen(self, setting: Setting) -> Any:
        """Return the classifier whose mixture the page shows; that of its own setting is the model as it was fitted."""
        parts, found = self.session.parts, self.session.settled(setting)
        model = copy.copy(parts.estimator)
        if setting == self.session.start:
            return model
        asked: dict[str, Any] = {"goals": setting.active, "budget": setting.budget, "mixture": "optimal"}
        if setting.alpha is not None:
            asked |= {"alpha": setting.alpha, "objective": None}
        if self.session.has_scores:
            asked |= {"by": setting.by, "deferral": found.aim.deferral}
        known = model.get_params(deep=False)
        model.set_params(**{name: value for name, value in asked.items() if name in known})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say, the page shows
            model._settle(parts.evidence, found.aim, found.solved.choice)  # noqa: SLF001 - of our own kind
        return model

    def goals_file(self, setting: Setting) -> dict[str, str]:
        """Return what a setting asks for as a part of a goals file, beside which data and models are to be named."""
        from counterpoise.runs.toml_text import as_toml  # noqa: PLC0415 - needs optional packages

        words: dict[str, Any] = {} if setting.alpha is None else {"alpha": setting.alpha}
        goals = [
            {"goal": str(goal.with_confidence(None)), "confidence": goal.confidence}
            for goal in self.session.asked_for(setting)
        ]
        chosen: dict[str, Any] = {"budget": setting.budget, "by": list(setting.by) or None}
        if setting.defer is not None:
            chosen["deferral"] = {"cost": setting.defer}
        if self.session.has_scores and not self.session.decides_by_one_rule:  # which a goals file takes for granted
            chosen["decision"] = kind_of_decision(self.session.parts.estimator.decision)
        parameters = {name: value for name, value in chosen.items() if value is not None}
        method = {"method": {"parameters": parameters}} if parameters else {}
        return {"name": "goals.toml", "text": as_toml(words | {"goals": goals} | method)}

    def model_file(self, setting: Setting) -> dict[str, str]:
        """Write the classifier of a setting, and return where it is."""
        from counterpoise.persist import save  # noqa: PLC0415 - only where asked

        model = self.model(setting)
        with self._fresh(".cp", lambda path: path.touch(exist_ok=False)) as path:
            save(model, path)
        return {"path": str(path)}

    def report(self, setting: Setting) -> dict[str, str]:
        """Write a run with its report, and return where it is."""
        raise ValueError(f"A report is of a run folder; there is none for {setting.active}.")

    def _whole(self, model: Any) -> Any:
        """Return the model with what stands before it."""
        return model

    @contextmanager
    def _fresh(self, ending: str, make: Callable[[Path], None]) -> Iterator[Path]:
        """Give a path in the folder at which nothing was: made here, so that no other server can have it too."""
        assert self.folder is not None  # noqa: S101 - else nothing is written
        self.folder.mkdir(parents=True, exist_ok=True)
        path = _made(self.folder, f"{self.session.parts.title}-explored", ending, make)
        try:
            yield path
        except BaseException:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            raise


def _made(folder: Path, name: str, ending: str, make: Callable[[Path], None]) -> Path:
    for number in range(1, _MOST):
        path = folder / f"{name}-{number}{ending}"
        with suppress(FileExistsError):
            make(path)
            return path
    raise ValueError(f"{folder} holds {_MOST - 1} exports already: move some away.")
