"""Builds the page of dynadmin with a Node of its own."""
