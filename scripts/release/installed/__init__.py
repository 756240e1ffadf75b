"""What a release hands out, installed and used in clean environments."""
