"""Rules of class probabilities, for more than two classes."""
