"""The inputs of the figures of Chem's paper."""

import gzip
import io
import tarfile
import wave
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from studies.cached_encryption.nonzero import counted
from studies.cached_encryption.radix import additions, digit_sum, powers, worst_case
from studies.cached_encryption.tensors import RECORDING, cars, mnist, recording, speech


@pytest.mark.parametrize("radix", [2, 3, 7, 10, 16, 255, 256, 1000])
@pytest.mark.parametrize("bits", [1, 4, 8, 10])
def test_the_worst_case_is_the_largest_of_all_values(radix: int, bits: int) -> None:
    assert worst_case(radix, bits) == max(digit_sum(x, radix) for x in range(1 << bits)) - 1
    assert radix ** (powers(radix, bits) - 1) <= (1 << bits) - 1 < radix ** powers(radix, bits)


def test_radix_two_is_the_best_in_the_worst_case() -> None:
    for bits in (8, 16, 32, 64, 128):
        costs = [worst_case(radix, bits) for radix in range(2, 257)]
        assert min(costs) == costs[0] == bits - 1


def test_means_agree_with_the_definition() -> None:
    values = np.array([0, 1, 2, 255, 129, 16])
    for radix in (2, 3, 16, 256):
        expected = np.mean([max(digit_sum(int(x), radix) - 1, 0) for x in values])
        assert additions(values, radix) == pytest.approx(expected, rel=1e-15)


def test_stand_ins_have_shape_and_zeros_of_the_data_sets() -> None:
    for tensors, size, share in ((cars(2), 360 * 640, 0.9873), (speech(2), 64_321, 0.9972)):
        assert tensors.drawn
        assert tensors.samples.shape == (2, size)
        assert 0 <= tensors.samples.min() < tensors.samples.max() < 1 << tensors.bits
        # Six deviations of a binomial share.
        assert abs(tensors.nonzero - share) < 6 * np.sqrt(share * (1 - share) / (2 * size))


def test_damaged_images_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    with pytest.raises(SystemExit, match="folder of MNIST"):
        mnist(tmp_path, 1)
    header = np.array([0x0803, 2, 2, 3], ">u4").tobytes()
    path.write_bytes(gzip.compress(header + bytes(range(12))))
    assert mnist(tmp_path, 2).samples.tolist() == [list(range(6)), list(range(6, 12))]
    with pytest.raises(SystemExit, match="3 are asked for"):
        mnist(tmp_path, 3)
    path.write_bytes(gzip.compress(header + bytes(11)))
    with pytest.raises(SystemExit, match="its header does not say"):
        mnist(tmp_path, 1)


def test_values_that_are_not_zero_are_counted(tmp_path: Path) -> None:
    header = np.array([0x0803, 2, 2, 2], ">u4").tobytes()
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(header + bytes([0, 0, 0, 255, 0, 1, 3, 0])))
    # 255 has eight digits in radix 2 and is 100110 in radix 3; 3 is 11 and 10; 1 takes no addition.
    assert counted("one", mnist(tmp_path, 1)) == ["one", "4", "25.00 %", "1.750", "0.500"]
    assert counted("two", mnist(tmp_path, 2)) == ["two", "8", "37.50 %", "1.000", "0.250"]


def test_a_recording_is_read_from_its_distribution_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = io.BytesIO()
    with wave.open(sound, "wb") as audio:
        audio.setparams((1, 2, 16_000, 0, "NONE", ""))
        audio.writeframes(np.array([-32_768, 0, 3, 32_767], "<i2").tobytes())
    path = tmp_path / "pysptk-1.0.1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(RECORDING)
        member.size = len(sound.getvalue())
        archive.addfile(member, io.BytesIO(sound.getvalue()))
    with pytest.raises(SystemExit, match=r"is not pysptk-1\.0\.1"):
        recording(path)
    monkeypatch.setattr(
        "studies.cached_encryption.tensors.DISTRIBUTION", sha256(path.read_bytes()).hexdigest()
    )
    assert recording(path).samples.tolist() == [[32_768, 0, 3, 32_767]]
