"""Generates graphs from chosen layouts: engines with flags, images, volumes, planner, and the request's overrides."""
