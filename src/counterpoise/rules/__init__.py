"""What can be decided and which is best: pools of models, families of rules, the program, and deciders."""
