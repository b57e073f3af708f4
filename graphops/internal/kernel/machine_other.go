//go:build !amd64

package kernel

func detect() *machine { return nil }

func machines() []*machine { return nil }
