"""Builders and doubles that many tests share."""
