//go:build openblas

package main

import (
	"gonum.org/v1/netlib/blas/netlib"
	"gorgonia.org/gorgonia"
)

// All matrix products of the program, Gorgonia's and optimop's, go through the C BLAS that CGO_LDFLAGS links.
func init() {
	gorgonia.Use(netlib.Implementation{})
	blasName = "OpenBLAS"
}
