"""Sets replicas according to adapters, commands and budgets."""
