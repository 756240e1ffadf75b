"""The tables of a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from harness.pages.table import markdown, spread

from studies.networks.record import Record

Line = dict[str, Any]


def agreement(images: Sequence[Line]) -> tuple[int, int]:
    """The number of encrypted labels that equal those of the model in the clear, and the number of images."""
    return sum(label(line["scores"]) == line["clear_label"] for line in images), len(images)


def clear_cut(images: Sequence[Line], runs: Sequence[Line]) -> tuple[int, int]:
    """The same for the program in the clear, over the images whose two best scores differ by more than the
    error that was predicted before the run.
    """
    chosen = [line for line in images if margin(line) > runs[line["of_run"]]["predicted_error"]]
    return sum(label(line["scores"]) == label(line["program_scores"]) for line in chosen), len(chosen)


def label(scores: Sequence[float]) -> int:
    """The index of the largest score."""
    return int(np.argmax(scores))


def margin(line: Line) -> float:
    """The difference of the program's two best scores in the clear."""
    second, best = np.sort(line["program_scores"])[-2:]
    return float(best - second)


def tables(record: Record) -> list[str]:
    """Everything, in Markdown.

    Raises:
        ValueError: there are no images.
    """
    images = [record.images[number] for number in sorted(record.images)]
    if not images:
        raise ValueError("no image is recorded")
    run = record.runs[images[-1]["of_run"]]
    return [
        *markdown(["", "median (smallest to largest)"], figures(record, images), aligned=False),
        "",
        "## Labels",
        "",
        *markdown(["", "images"], labels(record, images)),
        "",
        "## Seconds of an image by kind of layer",
        "",
        *markdown(["kind", "seconds"], by_kind(images), aligned=False),
        "",
        settings(run),
        "",
    ]


def settings(run: Line) -> str:
    """The settings of a run."""
    return (
        f"{run['parameters']}; {run['depth']} levels, {run['bootstraps']} bootstraps, "
        f"{run['rotations']} rotations, {run['batch']} images in a ciphertext; {run['kept']}."
    )


def figures(record: Record, images: Sequence[Line]) -> list[tuple[str, str]]:
    """Time and memory."""
    used = [record.runs[place] for place in sorted({line["of_run"] for line in images})]

    def of_runs(name: str, unit: float = 1.0) -> str:
        values = [run[name] / unit for run in used]
        return f"{values[0]:.4g}" if len(values) == 1 else spread(values)

    def of_images(name: str, unit: float = 1.0) -> str:
        return spread(line[name] / unit for line in images)

    together = max(line["together"] for line in images)
    rows = [
        ("seconds an image", of_images("seconds")),
        *speed(used, images),
        ("predicted seconds of an evaluation, one thread", of_runs("predicted_s")),
        ("peak of the process, MB", f"{max(line['peak_bytes'] for line in images) / 1e6:.0f}"),
        ("predicted peak, MB", of_runs("predicted_peak_bytes", 1e6)),
        ("peak when compiled, MB", of_runs("compile_peak_bytes", 1e6)),
        ("memory at the end of an image, MB", of_images("rss_bytes", 1e6)),
        ("keys", of_runs("keys")),
        ("keys in memory, MB", of_runs("key_bytes", 1e6)),
        ("keys in a file, MB", of_runs("key_file_bytes", 1e6)),
        ("encoded model, MB", of_runs("plaintext_bytes", 1e6)),
        ("ciphertexts sent an image, MB", of_images("sent_bytes", 1e6)),
        ("ciphertexts returned an image, MB", of_images("returned_bytes", 1e6)),
        ("compile, s", of_runs("compile_s")),
        ("save the program, s", of_runs("save_s")),
        ("load the program, s", of_runs("load_s")),
        ("program file, MB", of_runs("program_file_bytes", 1e6)),
        ("plan keys, s", of_runs("plan_s")),
        ("make keys, s", of_runs("keys_s")),
        ("encode the model, s", of_runs("prepare_s")),
        ("encrypt an image, s", of_images("encrypt_s")),
        ("decrypt its scores, s", of_images("decrypt_s")),
        ("largest error of an image's scores against the program in the clear", of_images("error")),
        ("the same, predicted", of_runs("predicted_error")),
        ("predict the error, s", of_runs("predict_s")),
        ("load of the machine when a run began", of_runs("load")),
    ]
    if together > 1:
        rows.insert(1, (f"seconds of up to {together} images together", of_images("together_s")))
    return rows


def speed(used: Sequence[Line], images: Sequence[Line]) -> list[tuple[str, str]]:
    """What helps to judge the times, if it is known: processor times, the time of a rotation, and the
    predicted speed-up by threads.
    """
    rows = []
    if all("processor_s" in line for line in images):
        rows.append(("processor seconds an image", spread(line["processor_s"] for line in images)))
    if all("rotation_s" in run for run in used):
        rotations = [1e3 * run["rotation_s"] for run in used]
        rows.append(("a rotation at level 26, digits of 5 primes, one thread, ms", spread(rotations)))
    if all(run.get("speedup") for run in used):
        predicted = spread(run["predicted_s"] / run["speedup"] for run in used)
        rows.append((f"predicted seconds of an evaluation, {used[-1]['threads']} threads", predicted))
    return rows


def labels(record: Record, images: Sequence[Line]) -> list[tuple[str, str]]:
    """How the labels of encrypted images, of the program, of the model and of the data set agree."""
    clear = sum(line["clear_label"] == line["label"] for line in images)
    right = sum(label(line["scores"]) == line["label"] for line in images)
    program = sum(label(line["program_scores"]) == line["clear_label"] for line in images)
    expected = max(record.runs[line["of_run"]]["predicted_error"] for line in images)
    rule = f"its two best scores differ by more than the predicted error, {expected:.2g}"
    return [
        ("encrypted label is the model's", share(*agreement(images))),
        (
            f"encrypted label is the program's in the clear, where {rule}",
            share(*clear_cut(images, record.runs)),
        ),
        ("label of the program in the clear is the model's", share(program, len(images))),
        ("model in the clear is right", share(clear, len(images))),
        ("encrypted is right", share(right, len(images))),
    ]


def share(count: int, total: int) -> str:
    """A count and its total."""
    return f"{count} of {total}" + (f" ({100 * count / total:.1f} %)" if total else "")


def by_kind(images: Sequence[Line]) -> list[tuple[str, str]]:
    """Seconds of every kind of layer."""
    kinds = dict.fromkeys(kind for line in images for kind in line["kinds"])
    return [(kind, spread(line["kinds"].get(kind, 0.0) for line in images)) for kind in kinds]
