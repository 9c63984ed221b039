"""Checkpoints of loaded engines: what takes one, and what starts from one. Pure, like all of rendering."""
