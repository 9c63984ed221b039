"""Builds the page of dynadmin with a separate Node."""
