"""Numbers of the guides: amounts, deferral, more than two classes."""
