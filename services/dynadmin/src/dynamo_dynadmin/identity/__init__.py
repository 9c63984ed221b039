"""Identifies the caller, and checks what the caller may do."""
