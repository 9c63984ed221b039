"""The platform in two replicas; parts are killed, stopped, wiped and restored while work goes on (`make chaos`)."""
