"""Benchmarks: each prints one line of figures and judges nothing. `make bench` runs them all."""
