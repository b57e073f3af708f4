// Package cloop has update loops in C: the yardstick of the benchmarks, since no program can be faster than one pass over
// memory by much. They are built with the tag cbench, which needs cgo and gcc; without it the package is empty.
// There are two of each: for all that the processor has, and for AVX2.
package cloop
