"""Replay: a graph, simulated under a trace, planned by any policy; what came of it as table and report."""
