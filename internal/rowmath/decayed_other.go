//go:build !amd64

package rowmath

const fast = false

func decayed8(*float32, *float32, *float32, int, *Decay) bool { return false }
