"""How often watched goals are wrongly said to fail or to hold, and how soon violations are proven."""
