"""The explorer on the first page: the static page of a model of made-up loans, written when the site is built."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.ensemble import HistGradientBoostingClassifier

from counterpoise import GoalClassifier
from counterpoise.datasets import loans
from counterpoise.explorer.pages import page_of
from counterpoise.explorer.source import session_of_model

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "explorer.html"
GOALS = ["recall >= 0.7", "max_difference(false_positive_rate, by=sex) <= 0.05"]


def loans_page() -> str:
    """Return the explorer of a model that decides about loans inside two goals, as one file."""
    people, _ = loans(40_000, random_state=0)
    X = people.drop(columns=["sex", "last_year", "default"]).astype({"job": "category", "region": "category"})
    train, choose, rest = people.index[:5000], people.index[5000:15_000], people.index[15_000:]

    def known(rows: Any) -> dict[str, Any]:
        return {"sensitive_features": people.loc[rows, ["sex"]], "baseline": people.loc[rows, "last_year"]}

    strong = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=40, random_state=0)
    strong.fit(X.loc[train], people.loc[train, "default"])
    model = GoalClassifier(strong, cv="prefit", goals=GOALS, pos_label="yes", random_state=0)
    model.fit(X.loc[choose], people.loc[choose, "default"], **known(choose))
    return page_of(session_of_model(model, X.loc[rest], people.loc[rest, "default"], **known(rest)))


def _write(app: "Sphinx", failed: Exception | None) -> None:
    page = Path(app.outdir) / PAGE
    if failed is None and app.builder.format == "html" and not page.exists():
        page.write_text(loans_page(), encoding="utf-8")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Write the page at the end of a build, unless an earlier one did."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
