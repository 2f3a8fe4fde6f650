"""The tail of the losses: what lowers it, at which price."""
