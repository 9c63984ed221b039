"""Finds the endpoints of models, loads LoRA adapters, and tells who serves what."""
