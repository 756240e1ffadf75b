"""How well a fine-tuned encoder tells labels of sentences apart, by cross-validation.

    cd benchmarks && python -m studies.attention.tuning --model FOLDER --sentences FILE [--tokens 32]
        [--folds 10] [--epochs 4] [--rate 0.0005] [--seed 1] [--out FOLDER]

MODEL is a BERT encoder as `transformers` stores it, and FILE has a sentence a line behind its label and a
tab, as for `studies.attention`. For each part of the sentences, the encoder and a linear classifier of the
mean state are trained on the other parts; the table of embeddings stays as it is. A row says how many
sentences of the part are labelled rightly; parts with a row are left out. Needs torch,
tokenizers and transformers.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from harness.folders import record_folder
from harness.measurement.clock import timed
from torch import nn
from torch.nn import functional

from studies.attention.inputs.encoder import Array
from studies.attention.inputs.sentences import Labelled
from studies.attention.process import append, command, recorded

BATCH = 32
"""Sentences of a step."""

DECAY = 0.01
"""Weight of the penalty on weights."""


class Classifier(nn.Module):  # type: ignore[misc]
    """An encoder, the mean state of the tokens, and a dense layer."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(encoder.config.hidden_size, 2)
        self.encoder.embeddings.requires_grad_(False)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits of sentences, (count, tokens) with a mask of 1 and 0."""
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        shown = mask[..., None].to(states.dtype)
        return self.head((states * shown).sum(1) / shown.sum(1))


def batches(sentences: Labelled, numbers: Array, tokens: int) -> list[tuple[torch.Tensor, ...]]:
    """Ids, masks and labels of some sentences, cut to a length and padded to the longest of a batch."""
    results = []
    for chosen in np.array_split(numbers, -(-len(numbers) // BATCH)):
        lengths = sentences.lengths(list(chosen), tokens)
        ids = sentences.cut(list(chosen), int(lengths.max()))
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        labels = np.array(sentences.labels)[chosen]
        results.append(tuple(map(torch.from_numpy, (ids, mask.astype(np.int64), labels))))
    return results


def tuned(
    model: Classifier, sentences: Labelled, numbers: Array, tokens: int, epochs: int, rate: float
) -> None:
    """Train on some sentences, at a rate that rises and then falls."""
    rng, steps = np.random.default_rng(len(numbers)), epochs * -(-len(numbers) // BATCH)
    trained = [each for each in model.parameters() if each.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=rate, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    model.train()
    for _ in range(epochs):
        for ids, mask, labels in batches(sentences, rng.permutation(numbers), tokens):
            loss = functional.cross_entropy(model(ids, mask), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    model.eval()


def right(model: Classifier, sentences: Labelled, numbers: Array, tokens: int) -> int:
    """How many of some sentences are labelled rightly."""
    with torch.no_grad():
        parts = [
            int((model(ids, mask).argmax(1) == labels).sum())
            for ids, mask, labels in batches(sentences, numbers, tokens)
        ]
    return sum(parts)


def main() -> None:
    """Train and record."""
    parser = command("studies.attention.tuning", __doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--sentences", type=Path, required=True, help="labelled text, a sentence a line")
    parser.add_argument("--tokens", type=int, default=32, help="of a sentence at most (default: 32)")
    parser.add_argument("--folds", type=int, default=10, help="parts of the sentences (default: 10)")
    parser.add_argument("--epochs", type=int, default=4, help="passes over a part's others (default: 4)")
    parser.add_argument("--rate", type=float, default=5e-4, help="largest step (default: 0.0005)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, help="folder of the record (default: record/DATE-attention-tuning)"
    )
    options = parser.parse_args()
    file = record_folder(options.out, "attention-tuning") / "folds.jsonl"
    ready = {row["fold"] for row in recorded(file)}
    sentences = Labelled.read(options.model / "tokenizer.json", options.sentences)
    order = np.random.default_rng(options.seed).permutation(len(sentences.labels))
    load = import_module("transformers").BertModel.from_pretrained
    for fold, tests in enumerate(np.array_split(order, options.folds)):
        if fold in ready:
            continue
        torch.manual_seed(options.seed + fold)
        model = Classifier(load(options.model))
        others = np.setdiff1d(order, tests)
        _, seconds = timed(tuned, model, sentences, others, options.tokens, options.epochs, options.rate)
        row = {
            "fold": fold, "sentences": len(tests), "right": right(model, sentences, tests, options.tokens),
            "right_of_others": right(model, sentences, others, options.tokens), "others": len(others),
            "processor_s": seconds.cpu, "epochs": options.epochs, "rate": options.rate,
        }  # fmt: skip
        append(file, row)
        print(row, flush=True)


if __name__ == "__main__":
    main()
