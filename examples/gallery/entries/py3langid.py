"""The language of a text, by counts of its bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from cifar import OnnxWriter

from gallery.entry import Array, Case, Entry

CALIBRATION = 200
TEXTS = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason and"
    " conscience and should act towards one another in a spirit of brotherhood.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und "
    "Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de "
    "raison et de conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos. Dotados como están de "
    "razón y conciencia, deben comportarse fraternalmente los unos con los otros.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di "
    "ragione e di coscienza e devono agire gli uni verso gli altri in spirito di fratellanza.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de "
    "consciência, devem agir uns para com os outros em espírito de fraternidade.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met "
    "verstand en geweten, en behoren zich jegens elkander in een geest van broederschap te gedragen.",
    "sv": "Alla människor är födda fria och lika i värde och rättigheter. De har utrustats med förnuft och "
    "samvete och bör handla gentemot varandra i en anda av gemenskap.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni"
    " rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    "fi": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu "
    "järki ja omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden hengessä.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и "
    "совестью и должны поступать в отношении друг друга в духе братства.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve "
    "birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
}
"""The first article of the Universal Declaration of Human Rights."""


def load(folder: Path) -> Case:
    """The package's naive Bayes classifier. The client counts byte sequences with the package's own code,
    which loads its model with pickle."""
    sys.path.insert(0, str(folder))
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-not-found]

    identifier = LanguageIdentifier.from_pickled_model(MODEL_FILE)
    writer = OnnxWriter()
    operands = [writer.constant(each.astype(np.float32)) for each in (identifier.nb_ptc, identifier.nb_pc)]
    result = writer.node("Gemm", "counts", *operands, name="scores")
    rng, codes = np.random.default_rng(0), list(TEXTS)

    def piece(code: str) -> str:
        words = TEXTS[code].split()
        start = rng.integers(len(words) // 2)
        return " ".join(words[start : start + rng.integers(5, 20)])

    def counts(texts: list[str]) -> Array:
        return np.array([identifier.instance2fv(text) for text in texts], np.float64)

    return Case(
        writer.model("counts", (identifier.nb_numfeats,), result, len(identifier.nb_classes)),
        counts([piece(codes[number % len(codes)]) for number in range(CALIBRATION)]),
        counts(list(TEXTS.values())),
        truth=np.array([identifier.nb_classes.index(code) for code in codes]),
    )


ENTRY = Entry(
    title="the language of a text, one of 97, by counts of 7,480 byte sequences; naive Bayes",
    licence="BSD",
    data="the first article of the Universal Declaration of Human Rights in twelve languages",
    load=load,
)
