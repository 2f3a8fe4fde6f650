"""What a sticky draw is made of: a secret key, rows as bytes, ids as bytes."""
