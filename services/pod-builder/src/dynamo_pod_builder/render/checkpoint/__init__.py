"""Checkpoints of loaded engines: what takes one, and what starts from one. Pure, as all of rendering."""
