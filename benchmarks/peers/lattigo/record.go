package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"syscall"
	"time"
)

// tolerance is the largest slot error of a result that counts as right; ../../README.md ("Checks") derives it.
const tolerance = 1.0 / (1 << 20)

// Record is one line of output.
type Record struct {
	Library   string    `json:"library"`
	Version   string    `json:"version"`
	Work      string    `json:"work"`
	LogN      int       `json:"log_n"`
	Level     int       `json:"level"`
	Alpha     *int      `json:"alpha"`
	Threads   int       `json:"threads"`
	Backend   string    `json:"backend"`
	Median    float64   `json:"median_s"`
	Min       float64   `json:"min_s"`
	Max       float64   `json:"max_s"`
	Processor []float64 `json:"processor_s,omitempty"`
	Runs      int       `json:"runs"`
	Bytes     int       `json:"bytes"`
	Checked   bool      `json:"checked"`
	PeakBytes int       `json:"peak_rss_bytes"`
}

// Bench holds the options of this run. An empty wanted means all works.
type Bench struct {
	alpha  int
	runs   int
	wanted map[string]bool
}

func (b *Bench) wants(works ...string) bool {
	for _, work := range works {
		if len(b.wanted) == 0 || b.wanted[work] {
			return true
		}
	}
	return false
}

// Subject says what is measured: everything of a record that is known before the clock starts.
type Subject struct {
	work       string
	logN       int
	level      int
	alpha      *int
	bytes      int
	operations int // per call
}

// measure times call after one untimed call. check returns the largest slot error of its last result.
func (b *Bench) measure(s Subject, call func() error, check func() (float64, error)) error {
	if !b.wants(s.work) {
		return nil
	}
	if err := call(); err != nil {
		return fmt.Errorf("%s at level %d: %w", s.work, s.level, err)
	}
	runtime.GC()
	seconds, processor := make([]float64, b.runs), make([]float64, b.runs)
	for i := range seconds {
		start, before := time.Now(), processorSeconds()
		if err := call(); err != nil {
			return fmt.Errorf("%s at level %d: %w", s.work, s.level, err)
		}
		seconds[i] = time.Since(start).Seconds() / float64(s.operations)
		processor[i] = (processorSeconds() - before) / float64(s.operations)
	}
	worst, err := check()
	if err != nil {
		return fmt.Errorf("checking %s at level %d: %w", s.work, s.level, err)
	}
	return emit(s, seconds, worst, processor...)
}

func emit(s Subject, seconds []float64, worst float64, processor ...float64) error {
	sort.Float64s(seconds)
	n := len(seconds)
	peak, err := peakRSS()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(Record{
		Library: "lattigo", Version: version(), Backend: "go", Threads: 1,
		Work: s.work, LogN: s.logN, Level: s.level, Alpha: s.alpha, Bytes: s.bytes,
		Median: (seconds[(n-1)/2] + seconds[n/2]) / 2, Min: seconds[0], Max: seconds[n-1], Runs: n, Processor: processor,
		Checked: worst <= tolerance, PeakBytes: peak,
	})
}

// processorSeconds is the user and system time of this process, all threads.
func processorSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// version is the module version that go.mod chose.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if strings.HasPrefix(module.Path, "github.com/tuneinsight/lattigo/") {
				return module.Version
			}
		}
	}
	return "unknown"
}

// peakRSS reads VmHWM: ru_maxrss would include the parent's size before exec.
func peakRSS() (int, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib * 1024, nil
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM line")
}
