"""Programs that run in pods, provided by ConfigMaps."""
