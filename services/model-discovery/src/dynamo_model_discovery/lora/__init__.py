"""LoRA adapters: asking workers to load and unload them, and knowing what they have loaded."""
