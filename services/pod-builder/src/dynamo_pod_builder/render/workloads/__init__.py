"""What runs pods: Deployments, LeaderWorkerSets, PodCliqueSets, and the queues and adapters next to them."""
