"""What a release is: built from a clean checkout, reproducibly, and tried as users install it."""
