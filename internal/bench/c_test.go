//go:build cbench

package bench

import (
	"os"

	"optimop/internal/bench/cloop"
)

// The loops in C may use what the solver's machine uses: OPTIMOP_KERNEL=avx2 asks for that of AVX2.
func init() {
	cAdam32, cAdam64, cMomentum32, checkC = cloop.Adam32, cloop.Adam64, cloop.Momentum32, cloop.Check
	cTarget = "this processor"
	if os.Getenv("OPTIMOP_KERNEL") == "avx2" {
		cloop.AVX2, cTarget = true, "AVX2"
	}
}
