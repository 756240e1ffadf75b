"""What instructions and programs refer to: transforms, polynomials, bootstraps, and the layout of tensors."""
