package kernel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// emissions counts the instructions in the code of programs, by machine, dtype and accumulators.
type emissions map[string]int

func (e emissions) program(m *machine, p *Program) {
	for _, ps := range p.everyPass() {
		for _, v := range ps.variants {
			for _, in := range slices.Concat(v.code, v.tail) {
				e[emission(m, ps.typ, in.op, in.a, in.b)]++
				e[emission(m, ps.typ, in.op, -1, -1)]++
			}
		}
	}
}

// emission names an instruction with its accumulators; negative ones stand for any.
func emission(m *machine, t DType, op opcode, a, b int) string {
	if opcodeForms[op] == 0 {
		b = a
	}
	return fmt.Sprint(m.name, []string{" float64 ", " float32 "}[t], opcodeNames[op], " ", a, b)
}

// everyPass lists the passes of a program: those of its stores, of its reductions, and of its whole values.
func (p *Program) everyPass() []*pass {
	all := slices.Clone(p.passes)
	for _, b := range p.batches {
		all = append(all, b.passes...)
	}
	for _, w := range p.whole {
		if w.pass != nil {
			all = append(all, w.pass)
		}
	}
	return all
}

// common reports whether programs need a handler often enough for it to be met here: a fused store takes another accumulator
// only where its operand is wanted later and the lower ones are full.
func common(op opcode, a, b int) bool {
	if opcodeForms[op] == 3 {
		return a+b == 0
	}
	return a == b && opcodeForms[op] != 1 || a != b && opcodeForms[op] > 0 && !strings.HasSuffix(opcodeNames[op], "AxpbyStore")
}

// Every instruction is executed on every machine and in both dtypes by some random program, with the right results, and the
// code of some program uses nearly every handler (TestHandlers tries them all), so that none is there in vain.
func TestEveryInstructionIsUsed(t *testing.T) {
	if len(machines()) == 0 {
		t.Skip("there is no vector machine")
	}
	const few = 8 // handlers that need luck
	e := emissions{}
	for seed := 0; seed%100 > 0 || seed < 400 || len(e.missing(true)) > 0; seed++ {
		require.Less(t, seed, 5000, "%v", e.missing(true))
		require.NoError(t, newRandom(seeded(seed, 400), smaller(600)).check(func(m *machine, p *Program) {
			if m != nil {
				e.program(m, p)
			}
		}), "seed %d", seed)
	}
	if testing.Short() {
		return
	}
	for seed := 0; seed%100 > 0 || len(e.missing(false)) > few; seed++ {
		require.Less(t, seed, 5000, "%v", e.missing(false))
		r := newRandom(seeded(seed, 500), smaller(20))
		for _, m := range machines() {
			p := r.program(m)
			for _, ps := range p.everyPass() {
				ps.variants = append(ps.variants, p.compile(ps, uint64(seed)))
			}
			e.program(m, p)
		}
	}
}

// missing lists the instructions that no program has used, by dtype, or the common handlers that none has used in either
// dtype: the choice of accumulators is the same.
func (e emissions) missing(instructions bool) (list []string) {
	for _, m := range machines() {
		for op := range opEnd {
			for typ := range Int64 {
				twice := typ == Float64 && (op == opSum || op == opSumSquares) // which Add does
				if instructions && !twice && e[emission(m, typ, op, -1, -1)] == 0 {
					list = append(list, emission(m, typ, op, -1, -1))
				}
			}
			for a := range m.accumulators {
				for b := range m.accumulators {
					used := e[emission(m, Float32, op, a, b)] + e[emission(m, Float64, op, a, b)]
					if !instructions && common(op, a, b) && used == 0 {
						list = append(list, emission(m, Float32, op, a, b))
					}
				}
			}
		}
	}
	return list
}
