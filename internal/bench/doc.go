// Package bench measures how fast the update is. It has benchmarks,
//
//	go test -tags cbench -bench . ./internal/bench
//
// whose names suit benchstat, and, as the memory of a shared machine is not equally fast from one second to the next, a table of
// paired measurements that judges each of them against its bound:
//
//	go test -tags cbench -run TestAcceptance -v -timeout 60m ./internal/bench -acceptance
//	go test -tags cbench -run TestRuleTable -v -timeout 60m ./internal/bench -table
//
// With the tag cbench, loops in C are measured too (package cloop); the tables need them. They are compiled for all that the
// processor has, but with OPTIMOP_KERNEL=avx2, which asks the solvers for their code for AVX2, for AVX2 as well. -largest
// 1000000 leaves out the larger arrays; the rules are then measured, but not judged, as their bound is for ten million
// parameters. About 2 GB of memory are used at most.
package bench
