"""What everything stands on: types, checks of arguments, lazy names, how kernels compile, progress, secrets."""
