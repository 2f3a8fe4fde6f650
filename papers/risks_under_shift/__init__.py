"""What a mixture chosen for another risk buys where the rows to decide about shift."""
