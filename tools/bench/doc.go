// Package bench holds the benchmarks of the whole: of the engine on generated snapshots, as tests of this package, and as commands below it
// of the service over the wire (wire), under load, attacked and as several replicas (load), and of the long commands (cli). Benchmarks
// report; what is tested here are allocations, which no other program on the machine can change.
package bench
