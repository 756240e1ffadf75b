"""Transformers of PyTorch and of the package `transformers`, as `studies.exporters.writing.torch` exports
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import nn

TOKENS, WIDTH = (5, 8), {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}


class Called(nn.Module):  # type: ignore[misc]
    """A module that is called in a way of its own."""

    def __init__(self, module: nn.Module, call: Callable[[nn.Module, Any], Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, x: Any) -> Any:
        return self.call(self.module, x)


def layer(**options: Any) -> nn.Module:
    """One encoder layer of two heads."""
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)


def attention(call: Callable[[nn.Module, Any], Any]) -> nn.Module:
    """Attention of two heads."""
    return Called(nn.MultiheadAttention(8, 2, batch_first=True), call)


def bert(call: Callable[[nn.Module, Any], Any], **options: Any) -> nn.Module:
    """BERT of one layer."""
    config = transformers.BertConfig(
        vocab_size=7, num_hidden_layers=1, max_position_embeddings=8, **WIDTH, **options
    )
    return Called(transformers.BertModel(config), call)


def vit(**options: Any) -> nn.Module:
    """A vision transformer of one layer, with four patches and three labels."""
    config = transformers.ViTConfig(
        num_hidden_layers=1, image_size=8, patch_size=4, num_channels=1, num_labels=3, **WIDTH, **options
    )
    return Called(transformers.ViTForImageClassification(config), lambda m, x: m(x).logits)


def hidden(module: nn.Module, x: Any) -> Any:
    """The states of all tokens."""
    return module(inputs_embeds=x).last_hidden_state


def short(module: nn.Module, x: Any) -> Any:
    """The states of all tokens, without the last one's share."""
    mask = torch.tensor([[1, 1, 1, 1, 0]]).expand(x.shape[0], -1)
    return module(inputs_embeds=x, attention_mask=mask).last_hidden_state


def causal(module: nn.Module, x: Any) -> Any:
    """A layer in which no token sees later ones."""
    return module(x, src_mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]), is_causal=True)


CASES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "TransformerEncoder": (lambda: nn.TransformerEncoder(layer(), 1), TOKENS),
    "TransformerEncoder, norm first": (
        lambda: nn.TransformerEncoder(
            layer(norm_first=True, activation="gelu"), 1, nn.LayerNorm(8), enable_nested_tensor=False
        ),
        TOKENS,
    ),
    "TransformerEncoder, causal": (lambda: Called(layer(), causal), TOKENS),
    "TransformerDecoderLayer": (
        lambda: Called(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), lambda m, x: m(x[:, :2], x)),
        TOKENS,
    ),
    "MultiheadAttention": (lambda: attention(lambda m, x: m(x, x, x)[0]), TOKENS),
    "cross-attention": (
        lambda: attention(lambda m, x: m(x[:, :2], x, x, need_weights=False)[0]),
        TOKENS,
    ),
    "BERT": (lambda: bert(hidden), TOKENS),
    "BERT, eager": (lambda: bert(hidden, attn_implementation="eager"), TOKENS),
    "BERT, gelu_new": (lambda: bert(hidden, hidden_act="gelu_new"), TOKENS),
    "BERT, masked": (lambda: bert(short), TOKENS),
    "BERT, pooled": (lambda: bert(lambda m, x: m(inputs_embeds=x).pooler_output), TOKENS),
    "BERT, causal": (
        lambda: bert(lambda m, x: m(inputs_embeds=x, use_cache=False).last_hidden_state, is_decoder=True),
        TOKENS,
    ),
    "ViT": (vit, (1, 8, 8)),
    "ViT, eager": (lambda: vit(attn_implementation="eager"), (1, 8, 8)),
}
"""By name, with the shape of a sample."""
