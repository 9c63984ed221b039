"""The stores of Dynamo's records. A source reads and parses records; other modules interpret them."""
