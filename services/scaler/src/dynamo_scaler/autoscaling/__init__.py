"""Autoscalers that a graph requests for its adapters: the request, the rendered object, and its reconciliation."""
