"""What can be taken away from a page: a goals file, and, written where the server runs, a model or a run with a report.

A model holds the scores and labels that it was chosen on, and the key of its draws: it is never sent to a page.
"""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterpoise.explorer.session import Session
from counterpoise.explorer.setting import Setting

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
        """Return the classifier of a setting, chosen by the library."""
        changes: dict[str, Any] = {"goals": setting.active, "budget": 1.0 if setting.budget is None else setting.budget}
        if setting.alpha is not None:
            changes["alpha"] = setting.alpha
        if self.session.has_scores:
            changes |= {"by": setting.by, "defer_cost": "never" if setting.defer is None else setting.defer}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say, the page shows
            return self.session.parts.estimator.rebalance(**changes)

    def goals_file(self, setting: Setting) -> dict[str, str]:
        """Return alpha and goals as a part of a goals file."""
        return {"name": "goals.toml", "text": as_toml(goals_words(setting))}

    def model_file(self, setting: Setting) -> dict[str, str]:
        """Write the classifier of a setting, and return where it is."""
        from counterpoise.persist import save  # noqa: PLC0415 - only where asked

        path = self._fresh(".cp")
        save(self._whole(self.model(setting)), path)
        return {"path": str(path)}

    def report(self, setting: Setting) -> dict[str, str]:
        """Write a run with its report, and return where it is."""
        raise ValueError(f"A report is of a run folder; there is none for {setting.active}.")

    def _whole(self, model: Any) -> Any:
        """Return the model with what stands before it."""
        return model

    def _fresh(self, ending: str) -> Path:
        """Return a path in the folder at which there is nothing yet."""
        assert self.folder is not None  # noqa: S101 - else nothing is written
        name = f"{self.session.parts.title}-explored"
        paths = (self.folder / f"{name}-{number}{ending}" for number in range(1, _MOST))
        found = next((path for path in paths if not path.exists()), None)
        if found is None:
            raise ValueError(f"{self.folder} holds {_MOST - 1} exports already: move some away.")
        return found


def goals_words(setting: Setting) -> dict[str, Any]:
    """Return alpha and goals as a goals file has them."""
    words: dict[str, Any] = {} if setting.alpha is None else {"alpha": setting.alpha}
    goals = []
    for goal in setting.active:
        asked: dict[str, Any] = {"goal": str(goal.with_confidence(None))}
        goals.append(asked if goal.confidence is None else asked | {"confidence": goal.confidence})
    return words | {"goals": goals}


def as_toml(words: Mapping[str, Any]) -> str:
    """Return plain values as TOML: values first, then tables, then lists of tables; what is None is left out.

    Examples
    --------
    >>> from counterpoise.explorer.exports import as_toml
    >>> print(as_toml({"alpha": 0.3, "goals": [{"goal": "recall(train) >= 0.9"}]}), end="")
    alpha = 0.3
    <BLANKLINE>
    [[goals]]
    goal = "recall(train) >= 0.9"
    """
    return "\n".join(_lines(words, "")).lstrip("\n") + "\n"


def _lines(words: Mapping[str, Any], place: str) -> list[str]:
    lines, later = [], []
    for name, value in words.items():
        key = f"{place}{json.dumps(name)}" if not name.isidentifier() else f"{place}{name}"
        if isinstance(value, Mapping):
            later += ["", f"[{key}]", *_lines(value, f"{key}.")] if value else []
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            later += [line for one in value for line in ("", f"[[{key}]]", *_lines(one, f"{key}."))]
        elif value is not None:
            lines.append(f"{key.removeprefix(place)} = {json.dumps(value, ensure_ascii=False)}")
    return lines + later
