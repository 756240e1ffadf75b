package main

import (
	"slices"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// batch is the number of transforms per timed run, so that the clock's own cost vanishes.
const batch = 32

// measureNTT times forward and inverse transforms of one residue polynomial modulo one prime.
func measureNTT(b *Bench, set ParameterSet) error {
	for _, logN := range set.NTTLogN {
		n := 1 << logN
		primes := ring.NewNTTFriendlyPrimesGenerator(uint64(set.NTTLogQ), uint64(2*n))
		q, err := primes.NextDownstreamPrime()
		if err != nil {
			return err
		}
		r, err := ring.NewRing(n, []uint64{q})
		if err != nil {
			return err
		}
		sub := r.SubRings[0]
		input, values, output := make([]uint64, n), make([]uint64, n), make([]uint64, n)
		for i := range input {
			input[i] = (uint64(i)*0x9E3779B97F4A7C15 + 12345) % q
		}
		sub.NTT(input, values)
		forward := func() error {
			for i := 0; i < batch; i++ {
				sub.NTT(input, values)
			}
			return nil
		}
		inverse := func() error {
			for i := 0; i < batch; i++ {
				sub.INTT(values, output)
			}
			return nil
		}
		shifts := func() (float64, error) { return shiftError(sub, input, values), nil }
		returns := func() (float64, error) { return difference(output, input), nil }
		forwardSubject := Subject{work: "ntt", logN: logN, bytes: 8 * n, operations: batch}
		if err := b.measure(forwardSubject, forward, shifts); err != nil {
			return err
		}
		inverseSubject := Subject{work: "intt", logN: logN, bytes: 8 * n, operations: batch}
		if err := b.measure(inverseSubject, inverse, returns); err != nil {
			return err
		}
	}
	return nil
}

// shiftError multiplies by X in evaluation form, transforms back and compares with the negacyclic shift.
func shiftError(sub *ring.SubRing, input, values []uint64) float64 {
	n := len(input)
	x, product, wanted := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	x[1] = 1
	sub.NTT(x, x)
	sub.MulCoeffsBarrett(values, x, product)
	sub.INTT(product, product)
	copy(wanted[1:], input)
	wanted[0] = (sub.Modulus - input[n-1]) % sub.Modulus
	return difference(product, wanted)
}

// difference is 0 when all residues agree and 1 otherwise.
func difference(found, wanted []uint64) float64 {
	if slices.Equal(found, wanted) {
		return 0
	}
	return 1
}
