"""GPU budgets over several graphs: counts, limits and transfers. Pure."""
