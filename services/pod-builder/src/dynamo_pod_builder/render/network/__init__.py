"""Access to pods: Services, ingress, gateways and the endpoint picker."""
