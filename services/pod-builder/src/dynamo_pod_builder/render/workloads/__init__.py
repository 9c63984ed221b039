"""What runs pods: Deployments, LeaderWorkerSets, PodCliqueSets, and their queues and adapters."""
