"""The papers' experiments on real data, published numbers beside ours: users of the library, one folder a paper."""
