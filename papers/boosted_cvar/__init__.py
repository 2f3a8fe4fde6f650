"""Boosted CVaR classification: Zhai, Dan, Suggala, Kolter and Ravikumar 2021."""
