package graphops

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/blas/gonum"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// otherBLAS is Gonum's under another type, for which no product is arranged in another way.
type otherBLAS struct{ gonum.Implementation }

func random(n int) []float64 {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	out := make([]float64, n)
	for i := range out {
		if rng.IntN(3) > 0 { // zeros too, since Gonum leaves them out
			out[i] = rng.NormFloat64()
		}
	}
	return out
}

// The gradients of a product are Gorgonia's, bit for bit, with any BLAS, also where Gonum works in blocks and in parallel.
func TestProductsEqualGorgonia(t *testing.T) {
	defer G.Use(G.WhichBLAS())
	for _, dt := range dtypes {
		for _, s := range [][3]int{{1, 1, 1}, {1, 5, 1}, {3, 1, 4}, {150, 70, 130}, {100, 300, 10}} {
			build := func() (*G.Node, G.Nodes) {
				g := G.NewGraph()
				a := input(g, dt, "a", []int{s[0], s[1]}, random(s[0]*s[1])...)
				b := input(g, dt, "b", []int{s[1], s[2]}, random(s[1]*s[2])...)
				weight := input(g, dt, "weight", []int{s[0], s[2]}, random(s[0]*s[2])...)
				return must(G.Sum(must(G.HadamardProd(must(G.Mul(a, b)), weight)))), G.Nodes{a, b}
			}
			cost, wrt := build()
			want := evaluate(t, must(G.Grad(cost, wrt...))...)
			for _, use := range []G.BLAS{gonum.Implementation{}, otherBLAS{}} {
				G.Use(use)
				cost, wrt = build()
				got := evaluate(t, must(Gradients(cost, wrt))...)
				sameBits(t, want[0], got[0], dt, s)
				sameBits(t, want[1], got[1], dt, s)
			}
		}
	}
}

// Every arrangement, also of a view that is read through strides, is the plain sum of products.
func TestProductArrangements(t *testing.T) {
	const m, k, n = 5, 3, 4
	x, y := random(m*k), random(k*n)
	for _, dt := range dtypes {
		for i := range 8 {
			ta, tb, view := i&1 > 0, i&2 > 0, i&4 > 0
			matrix := func(g *G.ExprGraph, name string, x []float64, r, c int, transposed bool) *G.Node {
				shape := []int{r, c}
				if transposed != view { // the memory holds columns
					flipped := make([]float64, len(x))
					kernel.Transposed(r, c, flipped, x)
					x, shape = flipped, []int{c, r}
				}
				d := dense(dt, shape, x...)
				if view {
					require.NoError(t, d.T())
				}
				return G.NodeFromAny(g, d, G.WithName(name))
			}
			g := G.NewGraph()
			out := must(newProduct(matrix(g, "a", x, m, k, ta), matrix(g, "b", y, k, n, tb), ta, tb))
			require.Equal(t, tensor.Shape{m, n}, out.Shape())
			got := evaluate(t, out)[0]
			for r := range m {
				for c := range n {
					sum := 0.0
					for l := range k {
						sum += x[r*k+l] * y[l*n+c]
					}
					require.InDelta(t, sum, got[r*n+c], 1e-6, "%v, transposed %v and %v, view %v", dt, ta, tb, view)
				}
			}
		}
	}
	g := G.NewGraph()
	a := input(g, tensor.Float64, "a", []int{2, 3}, random(6)...)
	_, err := newProduct(a, a, false, false)
	require.ErrorContains(t, err, "product A·B of float64 (2, 3) and float64 (2, 3)")
}

// Only gradients that are wanted are made: none of the input batch.
func TestNoGradientOfTheInput(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float32, "x", []int{2, 7}, random(14)...)
	w := input(g, tensor.Float32, "w", []int{7, 3}, random(21)...)
	must(Gradients(must(G.Sum(must(G.Mul(x, w)))), G.Nodes{w}))
	for _, n := range g.AllNodes() {
		require.False(t, n != x && n.Shape().Eq(x.Shape()), "%v", n)
	}
}

// Derivatives of derivatives of a product, against differences.
func TestProductHigherDerivatives(t *testing.T) {
	at := [][]float64{{.3, -.2, .5, .1, .7, -.4}, {.2, .9, -.6, .4, .1, -.3}}
	eval := func(second bool) (out [][]float64) {
		g := G.NewGraph()
		a, b := input(g, tensor.Float64, "a", []int{2, 3}, at[0]...), input(g, tensor.Float64, "b", []int{3, 2}, at[1]...)
		d := must(Gradients(must(G.Sum(must(G.Tanh(must(G.Mul(a, b)))))), G.Nodes{a, b}))
		penalty := must(G.Add(must(G.Sum(must(G.Square(d[0])))), must(G.Sum(must(G.Square(d[1]))))))
		if !second {
			return evaluate(t, penalty)
		}
		return evaluate(t, must(Gradients(penalty, G.Nodes{a, b}))...)
	}
	got := eval(true)
	for i := range at {
		for k, x := range at[i] {
			const h = 1e-6
			at[i][k] = x + h
			up := eval(false)[0][0]
			at[i][k] = x - h
			down := eval(false)[0][0]
			at[i][k] = x
			require.InDelta(t, (up-down)/(2*h), got[i][k], 1e-7)
		}
	}
}
