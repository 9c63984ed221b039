"""Images of servers, built from the programs of the tests, with the names in compose.yaml and the chart."""
