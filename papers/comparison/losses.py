"""What we would have to change, for each set, question and peer where we lose."""

WHY: dict[tuple[str, str, str], str] = {}
