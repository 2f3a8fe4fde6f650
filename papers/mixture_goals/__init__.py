"""Twenty models on ACS Income, mixed under six goals."""
