"""Autoscalers that a graph asks for next to its adapters: the request, the rendered object, and its reconciliation."""
