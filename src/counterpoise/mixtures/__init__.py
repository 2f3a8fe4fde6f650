"""Who decides: a pool of models, its mixture under goals, draws, few models, one rule, the price of a goal."""
