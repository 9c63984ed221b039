"""Readers of text that a tenant can write: into an object, or into an answer that one of the services reads.

Each reader bounds size, depth and count before it does the work, and returns values that are safe to calculate with.
"""
