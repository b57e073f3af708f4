package updater

import "math"

// gradients are the losses, and the raw gradients; nil where there is none.
func (r *reference) gradients(data [][]float64) (losses []float64, grads [][]float64) {
	grads = make([][]float64, len(r.vars))
	// add adds what is a function of the weight by. Its size is that of its summands, where they are rounded.
	add := func(i int, by *refVar, g, size func(k int) float64) {
		v := r.vars[i]
		if grads[i] == nil {
			grads[i] = make([]float64, len(v.w))
			clear(v.size)
		}
		for k := range grads[i] {
			grads[i][k] += g(k)
			if by.moved {
				v.size[k] += math.Abs(size(k))
			}
		}
	}
	for _, l := range r.losses {
		loss := 0.0
		for _, x := range l.terms {
			c, v := data[x.c], r.vars[x.v]
			w := v.w
			sum := func(f func(k int) float64) {
				for k := range w {
					loss += f(k)
				}
			}
			switch x.form {
			case "linear":
				sum(func(k int) float64 { return c[k] * w[k] })
				add(x.v, &refVar{}, func(k int) float64 { return c[k] }, nil)
			case "distance":
				sum(func(k int) float64 { return (w[k] - c[k]) * (w[k] - c[k]) })
				add(x.v, v, func(k int) float64 { return 2 * (w[k] - c[k]) }, func(k int) float64 { return math.Abs(w[k]) + math.Abs(c[k]) })
			case "square":
				sum(func(k int) float64 { return c[k] * w[k] * w[k] })
				g := func(k int) float64 { return 2 * c[k] * w[k] }
				add(x.v, v, g, g)
			case "tanh":
				y := func(k int) float64 {
					r.ambiguous = r.ambiguous || math.Abs(c[k]*w[k]) > 2 // where 1−y² loses digits
					return math.Tanh(c[k] * w[k])
				}
				sum(y)
				g := func(k int) float64 { return c[k] * (1 - y(k)*y(k)) }
				add(x.v, v, g, g)
			case "product":
				d, u := data[x.d], r.vars[x.with]
				own, ownSize := dot(c, w)
				other, otherSize := dot(d, u.w)
				loss += own * other
				add(x.v, u, func(k int) float64 { return c[k] * other }, func(k int) float64 { return c[k] * otherSize })
				add(x.with, v, func(k int) float64 { return d[k] * own }, func(k int) float64 { return d[k] * ownSize })
			}
		}
		losses = append(losses, loss)
	}
	for i, v := range r.vars {
		if l2 := r.l2(i); l2 != 0 && r.cfg["decouple_constraints"] != true {
			g := func(k int) float64 { return 2 * l2 * v.w[k] }
			add(i, v, g, g)
		}
		r.cancels(grads[i], v.size)
	}
	return losses, grads
}

// dot is Σ a·b and Σ |a·b|.
func dot(a, b []float64) (sum, size float64) {
	for k := range a {
		sum, size = sum+a[k]*b[k], size+math.Abs(a[k]*b[k])
	}
	return sum, size
}

// cancels finds gradients that are what rounding left of larger summands, of which an optimizer could make anything.
func (r *reference) cancels(g, size []float64) {
	for k := range g {
		r.ambiguous = r.ambiguous || size[k] > 0 && math.Abs(g[k]) < 1e-4*size[k]
	}
}
