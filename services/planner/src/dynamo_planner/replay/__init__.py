"""Replay: simulates a graph under a trace, planned by any policy; returns the outcome as table and report."""
