"""Settings of the papers' pages, chosen again on rows that no table of the page uses."""
