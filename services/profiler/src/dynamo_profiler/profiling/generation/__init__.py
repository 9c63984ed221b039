"""Graphs of what was chosen: engines with their flags, images, volumes, planner, and what the request changes of them."""
