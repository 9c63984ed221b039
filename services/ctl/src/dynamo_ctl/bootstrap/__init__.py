"""Credentials that a platform needs before its services start: created once, kept, and renewed on request."""
