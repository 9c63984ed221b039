"""The image-builder service: images of DynamoNimRequests."""
