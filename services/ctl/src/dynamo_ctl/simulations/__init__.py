"""Computations of profiler and planner for the REST API: estimates of a request, and replays of a graph's traffic."""
