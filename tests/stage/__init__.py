"""The platform as it runs in earnest: each service a process of its own, on real servers, watched from outside."""
