"""Ratios as objectives and as goals, beside OxonFair and scikit-learn's tuned threshold over the same scores."""
