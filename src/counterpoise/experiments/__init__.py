"""One file for each paper: its tables and figures, published numbers beside ours."""
