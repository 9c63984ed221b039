"""SLA planning: for every graph that asks for it, a policy is asked again and again, and the scaler is told what it says."""
