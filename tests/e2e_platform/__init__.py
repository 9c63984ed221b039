"""Both charts on a real node, from `helm install` to `helm uninstall`."""
