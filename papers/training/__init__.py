"""Training inside goals, beside other tools."""
