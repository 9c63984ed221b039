"""Scaling adapters: what they say of pods, whom their number comes from, and how a graph gets it."""
