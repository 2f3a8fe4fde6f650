"""The words for deciders, splits, verdicts and objectives in the result of a run."""

TRAIN, VALIDATION, TEST = SPLITS = ("train", "validation", "test")
MIXTURE, FIRST, AVERAGE, DEPLOYED = "mixture", "first model", "average", "deployed model"
VERDICTS = {"holds": 1.0, "undecided": 0.0, "fails": -1.0}  # as numbers
# What was minimised: the loss of the tail, of the worst group, another risk, a rate, or what the method does.
CVAR, WORST_GROUP, RISK, RATE, OWN = "cvar", "worst-group", "risk", "rate", "own"
