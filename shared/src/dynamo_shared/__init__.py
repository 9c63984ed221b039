"""What two or more services of Dynamo Platform need: API types, Kubernetes, NATS, etcd, runtime."""
