"""Boosting: ask a rule for sample weights, ask the learner for a model, record its losses, repeat.

Read ``rounds`` (the loop and its history), ``row_store`` (what it knows of the rows), ``rules`` (how rows are weighed)
and then a booster: ``lpboost`` for those whose models are mixed, with ``fit_data`` (the rows of a fit), ``run`` (its
rounds, with checkpoints) and ``inside`` (rounds that train for goals); ``adaboost`` for those that vote (``additive``).
"""
