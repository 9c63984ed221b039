"""Discovers the endpoints of models, loads LoRA adapters, and publishes which worker serves which model."""
