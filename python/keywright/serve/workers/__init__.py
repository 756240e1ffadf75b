"""Worker processes, and the keys that they keep in memory."""
