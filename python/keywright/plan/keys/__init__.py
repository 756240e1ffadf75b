"""A plan: which keys there are, its file, the time it takes, the keys derived in it, and its execution."""
