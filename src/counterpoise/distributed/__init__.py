"""The same estimators where rows live in shards: in other processes, on other machines, or in files."""
