"""How pods are reached: Services, ingress, gateways and the endpoint picker."""
