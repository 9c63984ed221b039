"""Images of servers under the names that compose.yaml and the chart give, made of the programs that the tests have."""
