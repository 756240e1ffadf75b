package main

import (
	"math/cmplx"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"
)

// rotations share one decomposition in rotate_hoisted; keygen times their keys.
var rotations = []int{1, 2, 3, 4, 5, 6, 7, 8}

// Scheme holds one parameter set's keys and operators, and the values that every ciphertext encrypts.
type Scheme struct {
	params    ckks.Parameters
	encoder   *ckks.Encoder
	encryptor *rlwe.Encryptor
	decryptor *rlwe.Decryptor
	evaluator *ckks.Evaluator

	relinBytes, galoisBytes int

	values, squares []complex128
}

func measureCKKS(b *Bench, set ParameterSet) error {
	special := make([]int, b.alpha)
	for i := range special {
		special[i] = set.LogP
	}
	params, err := ckks.NewParametersFromLiteral(ckks.ParametersLiteral{
		LogN: set.LogN, LogQ: set.LogQ, LogP: special, LogDefaultScale: set.LogScale,
	})
	if err != nil {
		return err
	}
	generator := rlwe.NewKeyGenerator(params)
	secret, public := generator.GenKeyPairNew()
	scheme := &Scheme{
		params:    params,
		encoder:   ckks.NewEncoder(params),
		encryptor: rlwe.NewEncryptor(params, public),
		decryptor: rlwe.NewDecryptor(params, secret),
	}
	for range params.MaxSlots() {
		value := sampling.RandComplex128(-1, 1)
		scheme.values = append(scheme.values, value)
		scheme.squares = append(scheme.squares, value*value)
	}
	if err := scheme.measureKeys(b, generator, secret); err != nil {
		return err
	}
	for _, level := range set.Levels {
		if err := scheme.measureLevel(b, level); err != nil {
			return err
		}
	}
	return nil
}

// measureKeys makes the keys that the wanted works need and times each rotation key once.
func (s *Scheme) measureKeys(b *Bench, generator *rlwe.KeyGenerator, secret *rlwe.SecretKey) error {
	var relin *rlwe.RelinearizationKey
	if b.wants("multiply", "multiply_relin", "rescale") {
		relin = generator.GenRelinearizationKeyNew(secret)
		s.relinBytes = relin.BinarySize()
	}
	var galois []*rlwe.GaloisKey
	var seconds []float64
	if b.wants("keygen", "rotate", "rotate_hoisted") {
		for _, rotation := range rotations {
			start := time.Now()
			key := generator.GenGaloisKeyNew(s.params.GaloisElement(rotation), secret)
			seconds = append(seconds, time.Since(start).Seconds())
			galois = append(galois, key)
		}
		s.galoisBytes = galois[0].BinarySize()
	}
	s.evaluator = ckks.NewEvaluator(s.params, rlwe.NewMemEvaluationKeySet(relin, galois...))
	if !b.wants("keygen") {
		return nil
	}
	top := s.params.MaxLevel()
	last := rotations[len(rotations)-1]
	rotated, err := s.fresh(top)
	if err != nil {
		return err
	}
	if err := s.evaluator.Rotate(rotated, last, rotated); err != nil {
		return err
	}
	worst, err := s.worst(rotated, rolled(s.values, last))
	if err != nil {
		return err
	}
	return emit(Subject{work: "keygen", logN: s.params.LogN(), level: top, alpha: &b.alpha, bytes: s.galoisBytes}, seconds, worst)
}

// measureLevel measures every operation on fresh ciphertexts of one level.
func (s *Scheme) measureLevel(b *Bench, level int) error {
	x, err := s.fresh(level)
	if err != nil {
		return err
	}
	y, err := s.fresh(level)
	if err != nil {
		return err
	}
	plain := ckks.NewPlaintext(s.params, level)
	out := ckks.NewCiphertext(s.params, 1, level)
	product := ckks.NewCiphertext(s.params, 1, level)
	rescaled := ckks.NewCiphertext(s.params, 1, level-1)
	hoisted := map[int]*rlwe.Ciphertext{}
	for _, rotation := range rotations {
		hoisted[rotation] = ckks.NewCiphertext(s.params, 1, level)
	}
	decoded := make([]complex128, len(s.values))

	subject := func(work string, bytes, operations int) Subject {
		return Subject{work, s.params.LogN(), level, &b.alpha, bytes, operations}
	}
	checking := func(ct *rlwe.Ciphertext, wanted []complex128) func() (float64, error) {
		return func() (float64, error) { return s.worst(ct, wanted) }
	}
	multiply := func() error { return s.evaluator.MulRelin(x, y, product) }
	rescale := func() error { return s.evaluator.Rescale(product, rescaled) }

	steps := []struct {
		subject Subject
		call    func() error
		check   func() (float64, error)
	}{
		{
			subject("encode", plain.BinarySize(), 1),
			func() error { return s.encoder.Encode(s.values, plain) },
			func() (float64, error) {
				err := s.encoder.Decode(plain, decoded)
				return distance(decoded, s.values), err
			},
		},
		{
			subject("encrypt", out.BinarySize(), 1),
			func() error {
				if err := s.encoder.Encode(s.values, plain); err != nil {
					return err
				}
				return s.encryptor.Encrypt(plain, out)
			},
			checking(out, s.values),
		},
		{
			subject("decrypt", x.BinarySize(), 1),
			func() error {
				s.decryptor.Decrypt(x, plain)
				return s.encoder.Decode(plain, decoded)
			},
			func() (float64, error) { return distance(decoded, s.values), nil },
		},
		{
			subject("rotate", s.galoisBytes, 1),
			func() error { return s.evaluator.Rotate(x, 1, out) },
			checking(out, rolled(s.values, 1)),
		},
		{
			subject("rotate_hoisted", s.galoisBytes, len(rotations)),
			func() error { return s.evaluator.RotateHoisted(x, rotations, hoisted) },
			func() (float64, error) { return s.worstRotation(hoisted) },
		},
		{subject("multiply_relin", s.relinBytes, 1), multiply, checking(product, s.squares)},
		{subject("rescale", x.BinarySize(), 1), rescale, checking(rescaled, s.squares)},
		{
			subject("multiply", s.relinBytes, 1),
			func() error {
				if err := multiply(); err != nil {
					return err
				}
				return rescale()
			},
			checking(rescaled, s.squares),
		},
	}
	if b.wants("rescale") { // it takes its product from here when multiply_relin is not wanted
		if err := multiply(); err != nil {
			return err
		}
	}
	for _, step := range steps {
		if err := b.measure(step.subject, step.call, step.check); err != nil {
			return err
		}
	}
	return nil
}

// fresh encrypts the values at one level.
func (s *Scheme) fresh(level int) (*rlwe.Ciphertext, error) {
	plain := ckks.NewPlaintext(s.params, level)
	if err := s.encoder.Encode(s.values, plain); err != nil {
		return nil, err
	}
	return s.encryptor.EncryptNew(plain)
}

// worst decrypts and returns the largest slot error.
func (s *Scheme) worst(ct *rlwe.Ciphertext, wanted []complex128) (float64, error) {
	found := make([]complex128, len(wanted))
	err := s.encoder.Decode(s.decryptor.DecryptNew(ct), found)
	return distance(found, wanted), err
}

func (s *Scheme) worstRotation(rotated map[int]*rlwe.Ciphertext) (float64, error) {
	worst := 0.0
	for rotation, ct := range rotated {
		one, err := s.worst(ct, rolled(s.values, rotation))
		if err != nil {
			return 0, err
		}
		worst = max(worst, one)
	}
	return worst, nil
}

func distance(found, wanted []complex128) float64 {
	worst := 0.0
	for i := range found {
		worst = max(worst, cmplx.Abs(found[i]-wanted[i]))
	}
	return worst
}

// rolled moves the values to the left.
func rolled(values []complex128, by int) []complex128 {
	return append(append([]complex128{}, values[by:]...), values[:by]...)
}
