"""Key sets of published networks under every strategy."""
