"""compose.yaml as it stands, under podman-compose, on a machine of its own."""
