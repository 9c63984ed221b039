"""Pods: their containers, variables, volumes and probes, and how a user's template overrides them."""
