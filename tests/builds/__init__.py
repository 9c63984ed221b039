"""The parts of a build that are real in tests: BuildKit, a registry, and what runs a build's pod."""
