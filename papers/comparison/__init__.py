"""Ours against every peer: one study, one page."""
