"""What a service answers for: models and search indices."""
