"""Programs that run in pods, as ConfigMaps bring them there."""
