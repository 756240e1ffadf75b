"""The language of a text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
from cifar import OnnxWriter

from gallery.entry import Array, Case, Entry

CALIBRATION = 600
NGRAMS = {0: 2, 1: 4, 4: 3, 5: 1}
"""Lengths of the n-grams of which an embedding is a mean, by its number; 2 and 3 are of scripts."""
RANGES = (
    (0x370, 0x3FF),
    (0x400, 0x4FF),
    (0x590, 0x5FF),
    (0x600, 0x6FF),
    (0x1100, 0x11FF),
    (0x3041, 0x309F),
    (0x30A0, 0x30FF),
)
"""Relevant scripts, from number 5 on; 1 to 4 are the numbers of bytes of other characters."""
HAN = 24
SCRIPTS = """
LATIN GREEK CYRILLIC ARMENIAN HEBREW ARABIC SYRIAC THAANA DEVANAGARI BENGALI GURMUKHI GUJARATI
ORIYA TAMIL TELUGU KANNADA MALAYALAM SINHALA THAI LAO TIBETAN MYANMAR GEORGIAN CJK ETHIOPIC
CHEROKEE CANADIAN OGHAM RUNIC KHMER MONGOLIAN
""".split()  # noqa: SIM905 (a line for each would be long)
"""First words of the names of letters, by the package's number of the script less 1."""


class Source:
    """The C++ sources of the package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers = (folder / "lang_id_nn_params.cc").read_text()

    def array(self, name: str) -> Array:
        """The numbers of an array by its name."""
        (body,) = re.findall(rf"LangIdNNParams::{name}\[\] = \{{([^}}]*)\}}", self.numbers)
        return np.array(body.replace("f", "").replace("u", "").split(","), np.float64)

    def embedding(self, number: int) -> Array:
        """An embedding (values, size): bytes above 128, times a scale of 16 bits for each row."""
        scales = self.array(f"kEmbeddingsQuantScales{number}").astype("<u4") << 16
        size = int(self.array("kEmbeddingsNumCols")[number])
        table = self.array(f"kEmbeddingsWeights{number}").reshape(-1, size) - 128
        return np.asarray(table * scales.view("<f4")[:, None])

    def languages(self) -> list[str]:
        """Codes of the languages, in the order of the outputs."""
        text = (self.folder / "task_context_params.cc").read_text()
        return re.findall(r'"([^"]*)"', text.split("kLanguageNames[] = {")[1].split("nullptr")[0])

    def texts(self) -> dict[str, str]:
        """The texts of the package's own test, by language."""
        text = (self.folder / "nnet_lang_id_test_data.cc").read_text()
        matches = re.findall(r'kTestStr(\w+) =((?:\s*"[^"]*")+);', text)
        return {name.lower(): "".join(re.findall(r'"([^"]*)"', parts)) for name, parts in matches}


def hashed(text: str) -> int:
    """The package's hash, of 32 bits."""
    data, mask, factor = text.encode(), 0xFFFFFFFF, 0x5BD1E995
    value = 0xBEEF ^ len(data)
    while len(data) >= 4:
        part = int.from_bytes(data[:4], "little") * factor & mask
        value = (value * factor & mask) ^ ((part ^ part >> 24) * factor & mask)
        data = data[4:]
    if data:
        value = (value ^ int.from_bytes(data, "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15


def cleaned(text: str) -> str:
    """Letters in lower case with their marks, and one space between words, before and after."""
    kept = (letter if unicodedata.category(letter)[0] in "LM" else " " for letter in text.lower())
    return f" {' '.join(''.join(kept).split())} "


def relevant_script(letter: str) -> int:
    """The number of the script whose share is counted."""
    for number, (first, last) in enumerate(RANGES):
        if first <= ord(letter) <= last:
            return 5 + number
    return len(letter.encode())


def script(text: str) -> int:
    """The number of the text's script. Japanese is Han; Korean has a number of its own."""
    name = unicodedata.name(text.strip()[0]).split()[0]
    if name == "HANGUL":
        return 102
    return HAN if name in ("HIRAGANA", "KATAKANA") else SCRIPTS.index(name) + 1


def shares(text: str) -> list[dict[int, float]]:
    """The rows of each embedding that a cleaned text takes, with their weights."""
    letters = "^" + text.replace(" ", "$ ^") + "$"
    rows = (1000, 5000, 0, 0, 5000, 100)
    shares: list[dict[int, float]] = []
    for number in range(6):
        counts: Counter[int] = Counter()
        if number == 2:
            counts.update(relevant_script(each) for each in text if each.isalpha() or ord(each) > 127)
        elif number == 3:
            counts[script(text)] = 1
        else:
            size = NGRAMS[number]
            grams = (letters[start : start + size] for start in range(len(letters) - size + 1))
            counts.update(hashed(gram) % rows[number] for gram in grams if " " not in gram)
        shares.append({row: count / counts.total() for row, count in counts.items()})
    return shares


def load(folder: Path) -> Case:
    """The network behind the embeddings, which the client looks up: its input are their means, 80 numbers."""
    source = Source(next(folder.glob("gcld3-*")) / "src")
    tables = [source.embedding(number) for number in range(6)]

    def embedded(text: str) -> Array:
        means = [np.zeros(table.shape[1]) for table in tables]
        for mean, table, part in zip(means, tables, shares(cleaned(text)), strict=True):
            for row, weight in part.items():
                mean += weight * table[row]
        return np.concatenate(means)

    writer, value = OnnxWriter(), "means"
    for name, size in (("Hidden", 208), ("Softmax", 109)):
        weight = source.array(f"k{name}Weights0").reshape(-1, size)
        bias = source.array(f"k{name}BiasWeights0")
        value = writer.node("Relu", value, name="relu") if name == "Softmax" else value
        operands = [writer.constant(each.astype(np.float32)) for each in (weight, bias)]
        value = writer.node("Gemm", value, *operands, name=name.lower())
    languages, texts = source.languages(), source.texts()
    rng, codes = np.random.default_rng(0), sorted(texts)
    parts = []
    for number in range(CALIBRATION):
        words = texts[codes[1::2][number % (len(codes) // 2)]].split()
        start = rng.integers(len(words))
        parts.append(embedded(" ".join(words[start : start + int(rng.integers(5, 30))])))
    return Case(
        writer.model("means", (80,), value, len(languages)),
        np.array(parts),
        np.array([embedded(texts[code]) for code in codes[::2]]),
        truth=np.array([languages.index(code) for code in codes[::2]]),
    )


ENTRY = Entry(
    title="the language of a text, one of 109, by embeddings of its n-grams; two layers with ReLU",
    licence="Apache-2.0",
    data="every second text of the package's own test",
    load=load,
)
