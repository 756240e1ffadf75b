"""Published models, run as shipped, in the clear and encrypted."""
