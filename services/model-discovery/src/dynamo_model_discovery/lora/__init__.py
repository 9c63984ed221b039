"""LoRA adapters: requests workers to load and unload them, and tracks the loaded adapters."""
