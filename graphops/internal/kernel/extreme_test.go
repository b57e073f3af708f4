package kernel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// handmade is a program over some arrays of n elements.
func handmade(typ DType, n, arrays int, build func(r *random, f *family)) *random {
	r := &random{}
	f := r.family(typ, [2]int{1, n})
	for i := range arrays {
		r.leaf(f, r.size, i%5*int(typ.size()))
	}
	r.numbers()
	build(r, f)
	r.fill(seeded(n, 2))
	return r
}

// Programs of extreme forms give the same results on all machines.
func TestExtremePrograms(t *testing.T) {
	number := func(r *random, x float64) int { return r.b.Add(Node{Op: Const, Bits: math.Float64bits(x)}) }
	for name, build := range map[string]func(r *random, f *family){
		"many arrays": func(r *random, f *family) {
			sum := f.tensors[0]
			for _, x := range f.tensors[1:] {
				sum = r.add(f.node(), Add, r.add(f.node(), Mul, sum, r.scalars[0]), x)
			}
			for i := range f.leaves {
				r.stores = append(r.stores, Store{i, r.add(f.node(), Sub, f.tensors[(i+1)%len(f.leaves)], sum), -1})
			}
		},
		"many values at once": func(r *random, f *family) {
			level := f.tensors
			for len(level) > 1 {
				var next []int
				for i := range len(level) / 2 {
					next = append(next, r.add(f.node(), []Op{Div, Sub, Max}[i%3], level[i], level[len(level)-1-i]))
				}
				level = next
			}
			r.stores = []Store{{3, level[0], -1}}
		},
		"many sums": func(r *random, f *family) {
			total := number(r, 0)
			for i, x := range f.tensors {
				total = r.add(Node{}, Add, total, r.add(Node{}, []Op{Sum, SumSquares, MaxAll}[i%3], r.add(f.node(), Sub, x, f.tensors[0])))
			}
			r.stores = []Store{{len(f.leaves), total, -1}}
		},
		"more conditions than bits": func(r *random, f *family) {
			x := f.tensors[0]
			for i := range 70 {
				cond := r.add(Node{}, Less, r.scalars[i%2], number(r, float64(i-35)/40))
				x = r.add(f.node(), Select, cond, r.add(f.node(), Add, x, f.tensors[i]), r.add(f.node(), Sub, x, number(r, float64(i))))
			}
			r.stores = []Store{{0, x, -1}, {1, f.tensors[0], r.conds[0]}}
		},
		"one condition often": func(r *random, f *family) {
			x := f.tensors[0]
			for i := range 100 {
				x = r.add(f.node(), Select, r.conds[0], r.add(f.node(), Max, x, f.tensors[i]), r.add(f.node(), Min, f.tensors[i], x))
			}
			r.stores = []Store{{0, x, -1}}
		},
		"deep to the left": func(r *random, f *family) {
			x := f.tensors[0]
			for i := range 2000 {
				x = r.add(f.node(), []Op{Sub, Add, Min}[i%3], x, f.tensors[i%len(f.leaves)])
			}
			r.stores = []Store{{0, x, -1}}
		},
		"deep to the right": func(r *random, f *family) {
			x := f.tensors[0]
			for i := range 2000 {
				x = r.add(f.node(), []Op{Sub, Div, Less}[i%3], r.add(f.node(), Abs, f.tensors[i%len(f.leaves)]), x)
			}
			r.stores = []Store{{0, x, -1}}
		},
		"deep and shared": func(r *random, f *family) {
			x, y := f.tensors[0], f.tensors[1]
			for i := range 2000 {
				x, y = r.add(f.node(), Sub, y, x), r.add(f.node(), []Op{Max, Add}[i%2], r.add(f.node(), Neg, x), y)
			}
			r.stores = []Store{{0, x, -1}, {1, y, -1}}
		},
		"stores of one value": func(r *random, f *family) {
			x := r.add(f.node(), Mul, f.tensors[0], r.scalars[0])
			for i := range f.leaves {
				r.stores = append(r.stores, Store{i, x, -1})
			}
		},
		"a ring of copies": func(r *random, f *family) {
			for i := range f.leaves {
				r.stores = append(r.stores, Store{i, f.tensors[(i+1)%len(f.leaves)], -1})
			}
		},
	} {
		for n, typ := range map[int]DType{1: Float64, 257: Float32} {
			require.NoError(t, handmade(typ, n, 120, build).check(func(*machine, *Program) {}), name)
		}
	}
}

// Every machine adds in the same order, around the ends of strips, blocks and chunks.
func TestReductionsAgree(t *testing.T) {
	for _, e := range edges {
		for _, typ := range []DType{Float64, Float32} {
			r := handmade(typ, e[0]*e[1], 2, func(r *random, f *family) {
				small := r.add(f.node(), Less, f.tensors[0], r.add(Node{}, MaxAll, f.tensors[1]))
				r.stores = []Store{{2, r.add(Node{}, Sum, r.add(f.node(), Mul, f.tensors[0], f.tensors[1])), -1},
					{3, r.add(Node{}, Add, r.add(Node{}, SumSquares, f.tensors[0]), r.add(Node{}, Sum, f.tensors[1])), r.add(Node{}, All, small)}}
			})
			require.NoError(t, r.check(func(*machine, *Program) {}))
		}
	}
}

// A pass whose conditions have many outcomes does not keep code for all of them.
func TestManyOutcomes(t *testing.T) {
	const conditions = 10
	r := handmade(Float64, 9, conditions, func(r *random, f *family) {
		x := f.tensors[0]
		for i := range conditions {
			bit := r.b.Add(Node{Op: Leaf, Leaf: r.place(place{r.size, 1, Float64}, 0)})
			x = r.add(f.node(), Select, bit, r.add(f.node(), Sub, f.tensors[i], x), x)
		}
		r.stores = []Store{{0, x, -1}}
	})
	in, want := r.bind(r.memory), r.bind(aligned(r.size))
	for _, m := range machines() {
		p, reference := r.program(m), r.program(nil)
		for outcome := range 1 << conditions {
			for i := range conditions {
				in[len(in)-1-i].setScalar(float64(outcome >> i & 1))
			}
			for i := range in {
				Copy(want[i], in[i])
			}
			require.NoError(t, p.Run(in, nil))
			require.NoError(t, reference.Run(want, nil))
			require.NoError(t, same[float64](want[0], in[0]), outcome)
			require.LessOrEqual(t, len(p.passes[0].variants), maxVariants)
			require.LessOrEqual(t, len(p.forms), maxVariants)
		}
	}
}

// Numbers below the normal ones are computed as in Go, not taken for zero.
func TestSubnormals(t *testing.T) {
	for _, typ := range []DType{Float64, Float32} {
		r := handmade(typ, 100, 3, func(r *random, f *family) {
			half := r.b.Add(Node{Op: Const, Bits: math.Float64bits(.5)})
			r.stores = []Store{{0, r.add(f.node(), Mul, f.tensors[0], half), -1},
				{1, r.add(f.node(), Sub, f.tensors[1], f.tensors[0]), -1}, {2, r.add(f.node(), Sqrt, f.tensors[2]), -1}}
		})
		for _, a := range r.bind(r.memory)[:3] {
			for i := range a.Len {
				if typ == Float32 {
					Elements[float32](a)[i] = math.Float32frombits(uint32(i * i))
				} else {
					Elements[float64](a)[i] = math.Float64frombits(uint64(i * i))
				}
			}
		}
		require.NoError(t, r.check(func(*machine, *Program) {}))
		want := math.Float64frombits(99 * 99 / 4) // half of it twice, both rounded to even
		if typ == Float32 {
			want = float64(math.Float32frombits(99 * 99 / 4))
		}
		require.Equal(t, want, element(r.bind(r.expect().memory)[0], 99))
	}
}

func element(a Array, i int) float64 {
	if a.Type == Float32 {
		return float64(Elements[float32](a)[i])
	}
	return Elements[float64](a)[i]
}
