"""LoRA adapters: asks workers to load and unload them, and tracks the loaded adapters."""
