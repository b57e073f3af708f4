package kernel

import "unsafe"

// fetch asks the memory for bytes that will be used soon. It does not wait for them.
//
//go:noescape
func fetch(p unsafe.Pointer, bytes int)
