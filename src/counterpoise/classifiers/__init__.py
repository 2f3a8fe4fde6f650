"""Classifiers that meet goals: of one model, of a pool of models, and one that is trained inside goals."""
