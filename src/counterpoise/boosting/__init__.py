"""Boosting: ask a rule for sample weights, ask the learner for a model, record its losses, repeat."""
