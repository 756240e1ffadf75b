"""The study of encrypted networks, on the smallest network that is shipped."""

import gzip
import json
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.console import Console
from harness.idx import read_idx
from harness.record import BadRecord
from PIL import Image
from studies.networks import report
from studies.networks.__main__ import Measurement, parse_options
from studies.networks.networks import CIFAR_CLASSES, cifar, digits
from studies.networks.record import IMAGE_FIELDS, RUN_FIELDS, Record, read
from studies.networks.session import groups


def options(images: int, *more: str) -> Any:
    return parse_options(["--network", "digits", "--images", str(images), *more])


@pytest.mark.full
def test_a_record_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    Measurement(options(2), tmp_path).run(Console())
    path = tmp_path / "digits.jsonl"
    with path.open("a") as file:
        file.write('{"image": 2, "lab')  # cut off in the middle of a line
    Measurement(options(3), tmp_path).run(Console())
    record = read(path)
    assert len(record.runs) == 2
    assert [line["of_run"] for line in record.images.values()] == [0, 0, 1]
    assert sorted(record.images) == [0, 1, 2]
    labels = digits(None, range(3)).labels
    for number, line in record.images.items():
        assert line["label"] == labels[number]
        assert 0 < line["error"] <= line["error_bound"]
        own, expected = np.array(line["scores"]), np.array(line["program_scores"])
        assert line["error"] == np.abs(own - expected).max()
        # The network is in single precision in the model, in double in the program.
        assert np.abs(own - line["model_scores"]).max() < line["error_bound"] + 1e-4
        assert 0 < sum(line["kinds"].values()) <= line["seconds"]
        assert line["peak_bytes"] >= record.runs[0]["key_bytes"]
    worst = max(line["error"] for line in record.images.values())
    assert abs(np.log2(worst / record.runs[0]["predicted_error"])) < 2
    assert record.runs[0]["key_bytes"] >= record.runs[0]["key_file_bytes"] > 0

    text = "\n".join(report.tables(record))
    assert "| encrypted label is the model's | 3 of 3 (100.0 %) |" in text
    before = path.read_text()
    Measurement(options(3), tmp_path).run(Console())
    assert path.read_text() == before, "nothing is missing, so nothing is measured"


@pytest.mark.full
def test_images_of_a_batch_share_what_it_takes(tmp_path: Path) -> None:
    Measurement(options(3, "--batch", "2"), tmp_path).run(Console())
    lines = read(tmp_path / "digits-batch2.jsonl").images
    assert [lines[number]["together"] for number in range(3)] == [2, 2, 1]
    assert [lines[number]["seconds"] * lines[number]["together"] for number in range(3)] == pytest.approx(
        [lines[number]["together_s"] for number in range(3)]
    )
    assert lines[0]["sent_bytes"] * 2 == lines[1]["sent_bytes"] * 2 == lines[2]["sent_bytes"]
    assert all(0 < line["error"] <= line["error_bound"] for line in lines.values())


def test_a_record_of_another_model_is_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "digits.jsonl").write_text(json.dumps({"run": run(model="0123")}) + "\n")
    with pytest.raises(BadRecord, match="has model 0123, not"):
        Measurement(options(1), tmp_path)


def run(**changes: Any) -> dict[str, Any]:
    zeros: dict[Any, Any] = {str: "", int: 0, float: 0.0, dict: {}}
    fields = {name: zeros[kind] for name, kind in RUN_FIELDS.items()}
    return {**fields, **changes}


def image(number: int, scores: list[float], program: list[float], **changes: Any) -> dict[str, Any]:
    zeros: dict[Any, Any] = {int: 0, float: 1.0, list: [], dict: {}}
    fields = {name: zeros[kind] for name, kind in IMAGE_FIELDS.items()}
    fields |= {"image": number, "scores": scores, "program_scores": program, "model_scores": program}
    return {**fields, "together": 1, "clear_label": report.label(program), **changes}


def test_labels_are_counted_where_scores_are_apart() -> None:
    record = Record()
    record.add({"run": run(predicted_error=0.5)})
    record.add(image(0, [1.0, 0.0], [1.0, 0.0]))
    record.add(
        image(1, [0.1, 0.0], [0.0, 0.1])
    )  # another label, but the scores differ by less than the predicted error
    lines = list(record.images.values())
    assert report.agreement(lines) == (1, 2)
    assert report.clear_cut(lines, record.runs) == (1, 1)
    record.add(image(2, [0.0, 1.0], [1.0, 0.0]))
    lines = list(record.images.values())
    assert report.clear_cut(lines, record.runs) == (1, 2), "an error above the prediction shows"
    record.runs[0]["predicted_error"] = 2.0
    assert report.clear_cut(lines, record.runs) == (0, 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "not a JSON object"),
        ('{"image": 1}', "no field 'label'"),
        (json.dumps(image(0, [0.0], [0.0])), "before any run"),
    ],
)
def test_bad_lines_are_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(BadRecord, match=message):
        read(path)


def test_impossible_lines_are_refused() -> None:
    record = Record()
    record.add({"run": run()})
    with pytest.raises(BadRecord, match="not a time"):
        record.add(image(0, [0.0], [0.0], seconds=0.0))
    with pytest.raises(BadRecord, match="different lengths"):
        record.add(image(0, [0.0, 1.0], [0.0]))
    with pytest.raises(BadRecord, match="'seconds' is 'soon'"):
        record.add(image(0, [0.0], [0.0], seconds="soon"))
    with pytest.raises(BadRecord, match="'together' is 'True'"):
        record.add(image(0, [0.0], [0.0], together=True))


def test_samples_that_share_ciphertexts_come_together() -> None:
    assert list(groups([7, 8, 9], 2)) == [[0, 1], [2]]


def test_cifar_images_are_read_class_by_class_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "test.tar"
    with tarfile.open(path, "w") as archive:
        for label, name in enumerate(CIFAR_CLASSES):
            for number in range(2):
                data = BytesIO()
                Image.new("RGB", (32, 32), (label, number, 255)).save(data, "png")
                entry = tarfile.TarInfo(f"test/{name}/{number:04}.png")
                entry.size = data.tell()
                data.seek(0)
                archive.addfile(entry, data)
    pictures = cifar(path, [0, 3, 13])
    assert pictures.labels.tolist() == [0, 3, 3]
    assert (pictures.samples[:, :, 5, 7] * 255).round().tolist() == [[0, 0, 255], [3, 0, 255], [3, 1, 255]]
    with pytest.raises(SystemExit, match="image 20 is asked for; CIFAR-10 has 20 here"):
        cifar(path, [20])


def test_idx_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    header = bytes([0, 0, 8, 1]) + (3).to_bytes(4, "big")
    path.write_bytes(gzip.compress(header + bytes([7, 2, 1])))
    assert read_idx(path).tolist() == [7, 2, 1]
    for damaged in (header + bytes(2), header[:6], b"\0\0\x0d\1" + header[4:] + bytes(3), b""):
        path.write_bytes(gzip.compress(damaged))
        with pytest.raises(SystemExit, match="labels"):
            read_idx(path)
