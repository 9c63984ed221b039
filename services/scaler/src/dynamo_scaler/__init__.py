"""Keeps replicas what adapters, commands and budgets say."""
