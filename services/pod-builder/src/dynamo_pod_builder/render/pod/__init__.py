"""Pods: their containers, variables, volumes and probes, and how a user's template is laid over them."""
