"""The platform in two replicas, parts of which are killed, stopped, wiped and set back while work goes on (`make chaos`)."""
