"""Computes deployments that meet an objective, with their figures, from a model and hardware."""
