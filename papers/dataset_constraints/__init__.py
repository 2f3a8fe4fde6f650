"""Dataset constraints: Goh, Cotter, Gupta and Friedlander 2016."""
