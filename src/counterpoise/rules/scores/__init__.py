"""Rules of a score: a model that scores people stands for every threshold, one for each group where that is allowed."""
