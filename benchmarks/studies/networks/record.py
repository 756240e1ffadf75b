"""The record: a line for each run, and one for each image as it is done, so that an interrupted run can be
resumed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.record import BadRecord

RUN_FIELDS: dict[str, type] = {
    "parameters": str,
    "threads": int,
    "depth": int,
    "batch": int,
    "bootstraps": int,
    "rotations": int,
    "predicted_s": float,
    "predicted_error": float,
    "predicted_mean_error": float,
    "predict_s": float,
    "compile_s": float,
    "save_s": float,
    "load_s": float,
    "plan_s": float,
    "keys_s": float,
    "prepare_s": float,
    "keys": int,
    "key_bytes": int,
    "key_file_bytes": int,
    "plaintext_bytes": int,
    "program_file_bytes": int,
    "compile_peak_bytes": int,
    "setup_peak_bytes": int,
    "predicted_peak_bytes": int,
    "memory_parts": dict,
    "kept": str,
    "model": str,
    "activations": dict,
    "commit": str,
    "load": float,
}
"""Of a run: seconds of each part, bytes, `model` is the SHA-256 of its file, `load` that of the machine,
`predicted_error` the largest of the scores against the program in the clear, before the run.

Since 2026-11-26 there are also `rotation_s`, of `reference.measure` before it, and `speedup`, of the threads
by the machine's calibration; `predicted_s`, of one thread, is that of the plan of keys and diagonals."""

IMAGE_FIELDS: dict[str, type] = {
    "image": int,
    "label": int,
    "clear_label": int,
    "scores": list,
    "program_scores": list,
    "model_scores": list,
    "error": float,
    "error_bound": float,
    "seconds": float,
    "together": int,
    "together_s": float,
    "kinds": dict,
    "encrypt_s": float,
    "decrypt_s": float,
    "sent_bytes": float,
    "returned_bytes": float,
    "peak_bytes": int,
    "rss_bytes": int,
}
"""Of an image: `clear_label` is that of the model itself, `scores` are decrypted, `program_scores` those of
the program in the clear, `error` the largest difference of the two. Seconds and bytes are shares of those of
the images `together` in a ciphertext. Since 2026-11-26 there is `processor_s`, of all threads."""


@dataclass
class Record:
    """The measurements so far.

    Attributes:
        runs: in order.
        images: of all runs, by number; each has the place of its run.
    """

    runs: list[dict[str, Any]] = field(default_factory=list)
    images: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, fields: dict[str, Any]) -> None:
        """Take one line.

        Raises:
            BadRecord: it is malformed.
        """
        if "run" in fields:
            self.runs.append(_checked(fields["run"], RUN_FIELDS))
            return
        image = _checked(fields, IMAGE_FIELDS)
        if not self.runs:
            raise BadRecord(f"image {image['image']} before any run")
        if not image["seconds"] > 0:
            raise BadRecord(f"seconds are {image['seconds']}, which is not a time")
        if not len(image["scores"]) == len(image["program_scores"]) == len(image["model_scores"]):
            raise BadRecord(f"image {image['image']} has scores of different lengths")
        self.images[image["image"]] = {**image, "of_run": len(self.runs) - 1}


def _checked(fields: Any, expected: dict[str, type]) -> dict[str, Any]:
    if not isinstance(fields, dict):
        raise BadRecord(f"not a JSON object: {str(fields)[:80]!r}")
    for name, kind in expected.items():
        if name not in fields:
            raise BadRecord(f"no field {name!r} in {str(fields)[:80]!r}")
        value = float(fields[name]) if type(fields[name]) is int and kind is not int else fields[name]
        if isinstance(value, bool) or not isinstance(value, kind):
            raise BadRecord(f"field {name!r} is {str(value)[:80]!r}")
    return fields


def read(path: Path) -> Record:
    """Read a file; a missing file is an empty record. A last line that was cut off is dropped from the file.

    Raises:
        BadRecord: a malformed line.
    """
    record = Record()
    if not path.exists():
        return record
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            record.add(json.loads(line))
        except (ValueError, BadRecord) as error:
            raise BadRecord(f"{path}:{number}: {error}") from error
    return record
