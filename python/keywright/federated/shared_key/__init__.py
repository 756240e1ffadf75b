"""What keeps a server that alters sums from learning about a shared key."""
