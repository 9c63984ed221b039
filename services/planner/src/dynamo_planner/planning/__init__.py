"""SLA planning: for every graph that asks for it, a policy runs again and again, and its decisions go to the scaler."""
