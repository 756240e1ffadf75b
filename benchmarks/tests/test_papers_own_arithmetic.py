"""Arithmetic on figures that the papers Chem, Boosted-Deflation and pipelined key switch print.

Each figure has its place in the paper. Nothing here is measured: the tests say whether the papers'
statements follow from their own figures. A verdict of the ledger (`studies.ledger`) rests on each.
"""

from math import ceil, log2

import pytest

pytestmark = pytest.mark.full
N = 2**16
KB = 8 * 1024
"""Bits of a KB, as the key switch's section 4 divides."""


def about(value: float, printed: float) -> bool:
    """Whether a value is within a twentieth of a figure that is printed."""
    return abs(value - printed) <= 0.05 * printed


# Boosted-Deflation


def test_boosted_deflation_products_of_a_client() -> None:
    # Appendix 5: a transform takes N log N / 2 products, a client three transforms, conventionally 31 times.
    transform = N * 16 // 2
    assert 25 < log2(3 * transform * 31) < 26, "printed as about 2^26"
    assert 20 < log2(3 * transform + 2 * N) < 21, "printed as about 2^21"


def test_boosted_deflation_products_of_pasta() -> None:
    thin = 3 * (N * 16 // 2) + 2 * N
    # Appendix 5, Pasta-3: eight products of 128 x 128, each matrix made at the same cost, 128 numbers
    # an encryption.
    pasta_3 = 2 * 8 * 128**2 * (2**15 // 128)
    assert pasta_3 == 2**26
    assert 39 < pasta_3 / thin < 40, "section 3.7 prints 32"
    # Appendix 5 says both: Pasta-4 takes half of Pasta-3, and 2^26, which Pasta-3 takes, is half of
    # Pasta-4's.
    assert 19 < pasta_3 / 2 / thin < 20, "by the first sentence"
    assert 78 < pasta_3 * 2 / thin < 79, "by the second"
    # Pasta's own paper (TCHES 2023): four rounds, so five layers of two matrices of 32 x 32, 32 numbers.
    pasta_4 = 2 * 10 * 32**2 * (2**15 // 32)
    assert 12 < pasta_4 / thin < 13, "section 3.7 prints 16"


def test_boosted_deflation_depth_of_pasta() -> None:
    # Appendix 5: 5 products deep, 1,024 executions beside one another for 2^15 numbers, 32 each.
    executions = 2**15 // 32
    assert executions == 1024
    assert 5 * executions == 5120, "the sum over executions that do not follow one another"
    assert 5120 / 16 == 320, "the factor of section 3.7"
    assert 5120 / executions < 16, "of one execution, and of as many beside one another"


def test_boosted_deflation_bootstraps_of_a_data_set() -> None:
    # Section 3.7: 123 bootstraps for 512 KB, 47 MB of data, 7,000 bootstraps of the program.
    transciphering = 123 * 47 * 1024 / 512
    assert round(transciphering) == 11562
    assert round(100 * transciphering / 7000) == 165, "the increase, printed as 256 %"
    assert [round(100 * (1 - ours / transciphering)) for ours in (222, 444)] == [98, 96]


def test_boosted_deflation_small_bootstrapping() -> None:
    # Section 3.6: 9.7 s, of which SlotToCoeff 1.07 s; on the accelerator 15.3 ms and 1.78 ms; figure 7
    # prints 72 %.
    assert round(100 * (1 - 1.07 / 9.7)) == 89
    assert round(100 * (1 - 1.78 / 15.3)) == 88
    # Table 3: the server adds 15.1 ms instead of 15.3 ms.
    assert round(100 * 15.1 / 15.3) == 99


def test_boosted_deflation_beside_lee() -> None:
    # Table 4, [18] over this work: LUT, FF, DSP, BRAM; section 5 prints 38, 30, 60 and 2.6.
    ratios = [1_179_000 / 31_421, 1_036_000 / 34_887, 12_288 / 204, 828.5 / 326]
    assert [round(ratio, 1) for ratio in ratios] == [37.5, 29.7, 60.2, 2.5]
    assert about(16.9 / 3.78, 4.5)
    assert about(0.71 / 0.13, 5.5), "[18]'s transform is faster"
    # Section 1.2: "up to 49x" less area. No row has it; it is the mean of LUT and DSP.
    assert all(round(ratio) != 49 for ratio in ratios)
    assert round((ratios[0] + ratios[2]) / 2) == 49


def test_boosted_deflation_beside_other_accelerators() -> None:
    # Table 4: [17] 7.79 ms, ALOHA 1.87 ms and 82.5 BRAM for polynomials eight times smaller.
    assert about(7.79 / 3.78, 2)
    assert about(8 * 7.79 / 3.78, 16)
    assert about(8 * 1.87 / 3.78, 4)
    assert about(326 / 82.5, 4)
    # [19]: LUT and DSP; section 5 prints 2.5 and 4.9.
    assert [round(77_000 / 31_421, 1), round(952 / 204, 1)] == [2.5, 4.7]
    # ASIC encryption at 2^13: RACE 110.3 ms, RISE 20.0 ms, over 0.70 ms; section 5 prints 30 to 157.
    assert [int(110.3 / 0.70), round(20.0 / 0.70)] == [157, 29]
    # Section 4.2: encryptions and decryptions a second.
    assert [round(1e3 / 0.70), round(1e3 / 0.49)] == [1429, 2041]


def test_boosted_deflation_cycles() -> None:
    # Table 4 in ms at 190 MHz, table 5 in thousands of cycles.
    assert round(0.71 * 190) == 135, "table 5 prints 131 thousand for a transform"
    assert [round(3.78 * 190), round(2.64 * 190)] == [718, 502]
    # Appendix 7.5: N log N / (2 x 4) cycles.
    assert N * 16 // 8 == 2 * N == 131_072


def test_boosted_deflation_memories_at_7_nm() -> None:
    # Section 4.2 prints 0.22 mm2 for the core at 7 nm. TSMC's cell, ISSCC 2017: 0.027 um2 for a bit.
    bits = 3 * N * 60
    assert round(bits / 1e6, 1) == 11.8
    assert round(bits * 0.027e-6, 2) == 0.32


def test_boosted_deflation_images_in_a_ciphertext() -> None:
    # Section 6.2: 64 images of 32 x 32 x 3 in one ciphertext, 154 MB for 10,000; 0.98 MB each (table 3).
    assert 64 * 32 * 32 * 3 == 196_608 == 3 * N
    assert N // (32 * 32) == 64, "the maps of one channel"
    ciphertexts = ceil(10_000 * 32 * 32 * 3 / N)
    assert ciphertexts == 469
    assert round(ciphertexts * 0.98) == 460
    assert ceil(10_000 / 64) == 157
    assert round(157 * 0.98) == 154


def test_boosted_deflation_logistic_regression() -> None:
    # Section 6.1: 845 MB at 112.5 and 12.5 MB/s.
    fast, slow = 845 / 112.5, 845 / 12.5
    assert [round(fast), round(slow), round((fast + slow) / 2)] == [8, 68, 38]
    # The server: 3.1 s become 3.8 s with 76 MB, 3.2 to 3.3 s with 13 to 25 MB; "6.5 %" is said of the
    # technique.
    assert round(100 * (3.8 / 3.1 - 1)) == 23
    assert [round(100 * (s / 3.1 - 1), 1) for s in (3.2, 3.3)] == [3.2, 6.5]
    # Bytes: 96.8 % less is neither 76 MB nor 13 to 25 MB, but close to the latter.
    assert [round(100 * (1 - mb / 845), 1) for mb in (76, 25, 13)] == [91.0, 97.0, 98.5]
    # HHE: 196 pixels of 11,982 images in 64 bits; 32 s of encryption become 0.05 s.
    assert round(196 * 11_982 * 64 / 8e6) == 19
    assert round(100 * (1 - 0.05 / 32), 1) == 99.8
    assert about(2.1 * 3.1, 6.6)


# Pipelined key switch


def test_key_switch_sizes() -> None:
    # Section 4: polynomials of 60 and 51 bits, a ciphertext polynomial, a ciphertext.
    assert [N * bits / KB for bits in (60, 51, 60 + 3 * 51, 2 * (60 + 3 * 51))] == [480, 408, 1704, 3408]
    # The key: 4 digits, two halves, five primes. The formula that is printed leaves the two halves out.
    assert 2 * 4 * N * (2 * 60 + 3 * 51) / KB == 17_472
    assert 4 * N * (2 * 60 + 3 * 51) / KB == 8_736


def test_key_switch_twiddle_factors() -> None:
    # Table 2, without and with generators; section 5.1 prints about 99 % and around 21 %.
    assert round(100 * (1 - 47 / 1842), 1) == 97.4
    assert round(100 * (6534 / 5376 - 1), 1) == 21.5
    assert round(100 * (850_843 / 816_188 - 1), 1) == 4.2
    assert round(100 * (887_095 / 796_331 - 1), 1) == 11.4, "flip-flops, a rise called negligible"


def test_key_switch_throughput() -> None:
    # Table 5: cycles over the clock, and the operations a second that are its inverse.
    assert round(67_168 / 236, 1) == 284.6
    assert round(236e6 / 67_168) == 3514
    # Table 6 counts 213 bits a coefficient, of the 273 that it lists as log Q.
    assert round(N * 213 / 284.6) == pytest.approx(49_046, abs=5)
    assert round(49_046 / 30_279, 1) == 1.6
    # Section 5.2: Medha's and FAB's figures are of a multiplication, with all 438 bits.
    assert round(2**14 * 438 / 497.24) == pytest.approx(14_431, abs=2)
    assert round(2**14 * 438 / 180.3) == pytest.approx(39_802, abs=2)


def test_key_switch_beside_heax() -> None:
    # Table 6 and section 5.2: ten times the polynomial, 1.3 times less memory, 2.15 times the
    # throughput for it.
    assert round(N * 273 / (2**13 * 218)) == 10
    assert round(22 / 16.5, 1) == 1.3
    assert about((49_046 / 16.5) / (30_279 / 22), 2.15)
    assert round((49_046 / 6534) / (30_279 / 2610), 2) == 0.65
    assert round((49_046 / 887) / (30_279 / 1976), 1) == 3.6


# Chem


def test_chem_radix_in_the_worst_case() -> None:
    # Section 3.4: f(r) = (r - 1) log_r(m + 1) - 1.
    def additions(radix: int, largest: int) -> float:
        return (radix - 1) * log2(largest + 1) / log2(radix) - 1

    worst = [additions(radix, 255) for radix in range(2, 257)]
    assert worst == sorted(worst)
    assert worst[0] == 7
