// Command lattigo measures Lattigo at the parameter sets of ../../sets.json and prints one JSON object per line.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

// ParameterSet is one entry of sets.json: prime sizes in bits and the levels to measure at.
type ParameterSet struct {
	LogN     int   `json:"log_n"`
	LogQ     []int `json:"log_q"`
	LogP     int   `json:"log_p"`
	LogScale int   `json:"log_scale"`
	Levels   []int `json:"levels"`
	NTTLogN  []int `json:"ntt_log_n"`
	NTTLogQ  int   `json:"ntt_log_q"`
}

func main() {
	sets := flag.String("sets", "sets.json", "file of parameter sets")
	name := flag.String("set", "quick", "name of the parameter set")
	alpha := flag.Int("alpha", 1, "primes per key-switching digit, which is also the number of special primes")
	work := flag.String("work", "", "comma-separated list of works (default: all)")
	runs := flag.Int("runs", 5, "timed runs per work")
	threads := flag.Int("threads", 1, "threads; Lattigo runs one operation on one thread")
	flag.Parse()

	if err := run(*sets, *name, *alpha, *work, *runs, *threads); err != nil {
		fmt.Fprintln(os.Stderr, "lattigo:", err)
		os.Exit(1)
	}
}

func run(path, name string, alpha int, work string, runs, threads int) error {
	if threads != 1 {
		return fmt.Errorf("one operation runs on one thread: --threads must be 1, not %d", threads)
	}
	if runs < 1 || alpha < 1 {
		return fmt.Errorf("--runs and --alpha are at least 1, not %d and %d", runs, alpha)
	}
	set, err := readSet(path, name)
	if err != nil {
		return err
	}
	bench := &Bench{alpha: alpha, runs: runs, wanted: map[string]bool{}}
	for _, w := range strings.Split(work, ",") {
		if w != "" {
			bench.wanted[w] = true
		}
	}
	if bench.wants("ntt", "intt") {
		if err := measureNTT(bench, set); err != nil {
			return err
		}
	}
	if bench.wants("rotate", "rotate_hoisted", "multiply", "multiply_relin", "rescale", "encode", "encrypt", "decrypt", "keygen") {
		return measureCKKS(bench, set)
	}
	return nil
}

func readSet(path, name string) (ParameterSet, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return ParameterSet{}, err
	}
	var sets map[string]ParameterSet
	if err := json.Unmarshal(text, &sets); err != nil {
		return ParameterSet{}, fmt.Errorf("%s: %w", path, err)
	}
	set, found := sets[name]
	if !found {
		return ParameterSet{}, fmt.Errorf("%s has no set %q", path, name)
	}
	return set, nil
}
