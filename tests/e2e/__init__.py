"""Real pods on a real node: kubelet, containerd and kube-proxy, in separate network, mount and process namespaces."""
