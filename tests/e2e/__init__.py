"""Real pods on a real node: kubelet, containerd and kube-proxy, in network, mount and process namespaces of their own."""
