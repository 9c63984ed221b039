"""NVIDIA's real Dynamo runtime for tests: mocker and frontend on a CPU, without network, in a separate environment."""
