"""The page of dynadmin in a real browser, against the local cluster."""
