// Command bootstrap measures one of Lattigo's default bootstrappings and prints one JSON object.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/bootstrapping"
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"
)

// Record is the output. Bits are -log2 of the distance of a part of a slot from the true one, for values with parts uniform in [-1, 1].
type Record struct {
	Library    string  `json:"library"`
	Version    string  `json:"version"`
	Work       string  `json:"work"`
	Preset     string  `json:"preset"`
	LogN       int     `json:"log_n"`
	LogScale   int     `json:"log_scale"`
	Threads    int     `json:"threads"`
	Median     float64 `json:"median_s"`
	Min        float64 `json:"min_s"`
	Max        float64 `json:"max_s"`
	Runs       int     `json:"runs"`
	LevelsLeft int     `json:"levels_left"`
	WorstBits  float64 `json:"worst_bits"`
	MeanBits   float64 `json:"mean_bits"`
	KeyBytes   int     `json:"key_bytes"`
	Keygen     float64 `json:"keygen_s"`
	Precompute float64 `json:"precompute_s"`
	Checked    bool    `json:"checked"`
}

func main() {
	runs := flag.Int("runs", 3, "timed runs")
	flag.Parse()
	if err := run(*runs); err != nil {
		fmt.Fprintln(os.Stderr, "lattigo bootstrap:", err)
		os.Exit(1)
	}
}

func run(runs int) error {
	if runs < 1 {
		return fmt.Errorf("--runs is at least 1, not %d", runs)
	}
	preset := bootstrapping.N16QP1546H192H32
	params, err := ckks.NewParametersFromLiteral(preset.SchemeParams)
	if err != nil {
		return err
	}
	boot, err := bootstrapping.NewParametersFromLiteral(params, preset.BootstrappingParams)
	if err != nil {
		return err
	}
	record := Record{Library: "lattigo", Version: "v6.2.0", Work: "bootstrap", Preset: "N16QP1546H192H32", LogN: params.LogN(),
		LogScale: params.LogDefaultScale(), Threads: 1, Runs: runs}

	secret := rlwe.NewKeyGenerator(params).GenSecretKeyNew()
	start := time.Now()
	keys, _, err := boot.GenEvaluationKeys(secret)
	if err != nil {
		return err
	}
	record.Keygen = time.Since(start).Seconds()
	record.KeyBytes = keys.BinarySize()
	start = time.Now()
	evaluator, err := bootstrapping.NewEvaluator(boot, keys)
	if err != nil {
		return err
	}
	record.Precompute = time.Since(start).Seconds()

	values := make([]complex128, params.MaxSlots())
	for i := range values {
		values[i] = sampling.RandComplex128(-1, 1)
	}
	encoder := ckks.NewEncoder(params)
	plaintext := ckks.NewPlaintext(params, 0)
	if err := encoder.Encode(values, plaintext); err != nil {
		return err
	}
	input, err := rlwe.NewEncryptor(params, secret).EncryptNew(plaintext)
	if err != nil {
		return err
	}
	times := make([]float64, runs)
	var output *rlwe.Ciphertext
	for i := range times {
		copied := input.CopyNew()
		start = time.Now()
		if output, err = evaluator.Bootstrap(copied); err != nil {
			return err
		}
		times[i] = time.Since(start).Seconds()
	}
	sort.Float64s(times)
	record.Median, record.Min, record.Max = times[runs/2], times[0], times[runs-1]
	record.LevelsLeft = output.Level()

	seen := make([]complex128, len(values))
	if err := encoder.Decode(rlwe.NewDecryptor(params, secret).DecryptNew(output), seen); err != nil {
		return err
	}
	worst, total := 0.0, 0.0
	for i := range values {
		d := seen[i] - values[i]
		re, im := math.Abs(real(d)), math.Abs(imag(d))
		worst = max(worst, re, im)
		total += re + im
	}
	record.WorstBits = -math.Log2(worst)
	record.MeanBits = -math.Log2(total / float64(2*len(values)))
	record.Checked = worst < 1.0/(1<<16)
	return json.NewEncoder(os.Stdout).Encode(record)
}
