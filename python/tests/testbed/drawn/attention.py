"""Generators of products of values, softmax and attention."""

from __future__ import annotations

from .drawing import Drawing

NEWEST = {"Attention": 23, "RMSNormalization": 23}


def softmax(d: Drawing, x: str) -> str:
    """Add a softmax over an axis, and a product, without which the client would compute it."""
    x = d.shaped(x, d.draw(2, 3))
    shape = d.shape(x)
    shares = d.add("Softmax", x, axis=int(d.rng.integers(1, len(shape))))
    return d.add("MatMul", shares, d.normal(shape[-1], int(d.rng.integers(1, 5))))


def einsum(d: Drawing, x: str) -> str:
    """Add products of a value with itself or with a constant, summed over axes."""
    x = d.shaped(x, 3)
    _, rows, columns = d.shape(x)
    equation = d.draw("bij,bkj->bik", "bij,bik->bkj", "bij,jk->bik", "bij,ij->bi", "bij->bji", "bij->bj")
    if "," not in equation:
        return d.add("Einsum", x, equation=equation)
    second = x
    if ",j" in equation:
        second = d.normal(columns, int(d.rng.integers(1, 5)))
    elif ",i" in equation:
        second = d.normal(rows, columns)
    return d.add("Einsum", x, second, equation=equation)


def attention(d: Drawing, x: str) -> str:
    """Add attention of a value to itself."""
    x = d.shaped(x, 3)
    width, heads = d.shape(x)[2], int(d.draw(1, 2))
    parts = [d.add("MatMul", x, d.normal(width, 2 * heads)) for _ in range(3)]
    return d.add("Attention", *parts, q_num_heads=heads, kv_num_heads=heads, is_causal=int(d.draw(0, 1)))


def rms_normalization(d: Drawing, x: str) -> str:
    """Add a normalisation over the last axis by the root of the mean square."""
    x = d.shaped(x, d.draw(2, 3))
    scale = d.constant(d.rng.uniform(0.5, 1.5, d.shape(x)[-1:]))
    return d.add("RMSNormalization", x, scale, axis=-1, epsilon=0.1)
