"""Verdicts about given answers: which goals hold on the population that rows were drawn from, and how surely."""
