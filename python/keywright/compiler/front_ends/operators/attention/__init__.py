"""Products of encrypted tensors, softmax inside a model, and attention."""
