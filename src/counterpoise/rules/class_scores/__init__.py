"""Rules of class probabilities: a model that tells how likely each of several classes is stands for many decisions."""
