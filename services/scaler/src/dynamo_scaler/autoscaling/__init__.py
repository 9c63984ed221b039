"""Autoscalers that a graph asks for beside its adapters: what is asked for, what it becomes, and keeping it so."""
