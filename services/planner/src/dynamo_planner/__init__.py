"""The planner: keeps objectives by planning replicas."""
