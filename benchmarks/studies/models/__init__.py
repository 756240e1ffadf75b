"""The costs and the accuracy of encrypted models of four frameworks."""
