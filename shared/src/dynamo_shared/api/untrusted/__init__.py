"""Readers of data that a tenant can write: into an object, or into a response that a service reads.

Each reader limits size, depth and count before it does the work, and returns values that are safe to calculate with.
"""
