"""Budgets of GPUs over several graphs: what counts, what fits, and what may be exchanged. Pure."""
