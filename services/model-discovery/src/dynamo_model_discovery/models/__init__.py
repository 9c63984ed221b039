"""DynamoModels: which workers serve a base model, and what its status says. Pure: no I/O, no clock."""
