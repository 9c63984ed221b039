"""Benchmarks: each prints one line of figures and has no pass or fail. `make bench` runs them all."""
