//go:build !amd64

package kernel

func machines() []*machine { return nil }
