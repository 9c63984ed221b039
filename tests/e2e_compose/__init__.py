"""Runs the unchanged compose.yaml under podman-compose, in separate namespaces."""
