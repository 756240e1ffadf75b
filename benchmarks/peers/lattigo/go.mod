module keywright.dev/benchmarks/peers/lattigo

go 1.24.0

require github.com/tuneinsight/lattigo/v6 v6.2.0 // indirect
