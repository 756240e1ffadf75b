"""Key sets that clients send: their parts, checks and storage."""
