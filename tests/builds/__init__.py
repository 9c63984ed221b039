"""The real parts of a build in tests: BuildKit, a registry, and a kubelet for the build's pod."""
