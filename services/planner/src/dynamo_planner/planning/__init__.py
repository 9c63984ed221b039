"""SLA planning: a policy runs periodically for each graph that requests it, and its decisions go to the scaler."""
