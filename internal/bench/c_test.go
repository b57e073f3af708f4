//go:build cbench

package bench

import "optimop/internal/bench/cloop"

func init() {
	cAdam32, cAdam64, cMomentum32, checkC = cloop.Adam32, cloop.Adam64, cloop.Momentum32, cloop.Check
}
