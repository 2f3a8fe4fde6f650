r"""
FastAPI: decisions as a service
===============================

A service answers one person at a time, from several threads: ``predict`` is safe to call from all of them, and takes
little more than the model inside. Start this one with ``uvicorn serve_fastapi:app``, and ask it::

    curl -X POST localhost:8000/decide -H "Content-Type: application/json" \
        -d '{"income": 2100, "savings": 900, "amount": 12000, "months": 48}'

Train and save elsewhere, and give the service the file: ``MODEL=loans.cp uvicorn serve_fastapi:app``. Without a file it
trains on made-up loans when it starts.
"""

import os
from contextlib import asynccontextmanager

import pandas as pd
from fastapi import FastAPI
from pydantic import BaseModel, Field

import counterpoise as cp
from counterpoise.datasets import loans


class Applicant(BaseModel, extra="forbid"):
    """What is known about a person; every field is checked before the model sees it."""

    income: float | None = Field(default=None, ge=0)
    savings: float | None = Field(default=None, ge=0)
    amount: float = Field(gt=0)
    months: int = Field(gt=0)


class Decision(BaseModel):
    """What the person is told, and why."""

    default: str
    score: float
    threshold: float
    text: str


COLUMNS = list(Applicant.model_fields)


def load_model():
    """Return the model that the variable MODEL names, or one of made-up loans."""
    if "MODEL" in os.environ:
        return cp.load(os.environ["MODEL"])
    table, _ = loans(2_000, random_state=0)
    model = cp.GoalClassifier(goals="recall >= 0.7", pos_label="yes", random_state=0)
    return model.fit(table[COLUMNS].astype(float), table["default"])


def frame_of(applicants):
    """Return people as the model takes them: None is missing."""
    return pd.DataFrame([one.model_dump() for one in applicants], columns=COLUMNS).astype(float)


@asynccontextmanager
async def lifespan(app):
    """Load the model once, and decide once, so that the first person does not wait for what loads on first use."""
    app.state.model = load_model()
    app.state.model.explain(frame_of([Applicant(amount=1.0, months=1)]))
    yield


app = FastAPI(title="Loans inside goals", lifespan=lifespan)


@app.post("/decide")
def decide(applicant: Applicant) -> Decision:
    """Decide about one person; FastAPI runs plain functions in threads."""
    (one,) = app.state.model.explain(frame_of([applicant]))
    return Decision(default=one.decision, score=one.score, threshold=one.threshold, text=str(one))


@app.post("/decide_many")
def decide_many(applicants: list[Applicant]) -> list[str]:
    """Decide about many people in one call, which is quicker than one by one."""
    return app.state.model.predict(frame_of(applicants)).tolist() if applicants else []


@app.get("/goals")
def goals() -> list[str]:
    """Say which goals the model was chosen inside of, and how it stood on the rows of the choice."""
    return [str(check) for check in app.state.model.check_goals()]
