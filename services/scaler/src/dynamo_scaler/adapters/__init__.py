"""Scaling adapters: their count of pods, the writers of their replicas, and the update of the graph."""
