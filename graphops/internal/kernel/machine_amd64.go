package kernel

import "golang.org/x/sys/cpu"

//go:generate go -C gen run . ..

// The machines, and the tables of their handlers: n of each type.

//go:noescape
func avx2(code *record, from, to, first uintptr, mask uint64)
func avx2Tables() (f64, f32 *uintptr, n int)

//go:noescape
func avx512(code *record, from, to, first uintptr, mask uint64)
func avx512Tables() (f64, f32 *uintptr, n int)

// machines are all that this processor can run, the fastest first.
func machines() (ms []*machine) {
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ {
		ms = append(ms, newMachine("avx512", 4, 256, true, avx512Tables, avx512))
	}
	if cpu.X86.HasAVX2 {
		ms = append(ms, newMachine("avx2", 3, 128, false, avx2Tables, avx2))
	}
	return ms
}
