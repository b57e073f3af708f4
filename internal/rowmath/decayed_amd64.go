package rowmath

import "golang.org/x/sys/cpu"

var fast = cpu.X86.HasAVX

// decayed8 is Decayed for a multiple of 8 elements.
//
//go:noescape
func decayed8(w, m, v *float32, n int, c *Decay) bool
