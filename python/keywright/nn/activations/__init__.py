"""Functions and the polynomials that stand for them: how these are fitted and how deep they are."""
