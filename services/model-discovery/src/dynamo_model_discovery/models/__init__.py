"""DynamoModels: the workers that serve a base model, and the model's status. Pure: no I/O, no clock."""
