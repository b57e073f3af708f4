package main

import (
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// form says for which accumulators an instruction has a handler.
type form int

const (
	one   form = iota // a
	two               // a and another one, b
	twice             // a and any one, b
	none              // no accumulators
)

type op = operand.Op

// instruction is one opcode of the machine. emit writes a handler's work on accumulators a and b.
type instruction struct {
	name, doc string
	form      form
	single    bool // exists for float32 only
	emit      func(v *vector, a, b int)
}

// each repeats work on the registers of a strip.
func each(f func(u int)) {
	for u := range vectors {
		f(u)
	}
}

// unary is a ← f(a).
func unary(name, doc string, f func(v *vector, a op)) instruction {
	return instruction{name: name, doc: doc, emit: func(v *vector, a, _ int) {
		each(func(u int) { f(v, v.acc(a, u)) })
	}}
}

// withRow is a ← f(a, row 0), followed by a ← f(a, scalar 0).
func withRow(name, doc string, f func(v *vector, a, m op)) []instruction {
	return []instruction{{name: name, doc: doc, emit: func(v *vector, a, _ int) {
		v.row(0)
		each(func(u int) { f(v, v.acc(a, u), v.at(0, u)) })
	}}, {name: name + "Scalar", doc: strings.ReplaceAll(doc, "row", "scalar"), emit: func(v *vector, a, _ int) {
		v.scalar(0, v.temp(0))
		each(func(u int) { f(v, v.acc(a, u), v.temp(0)) })
	}}}
}

// withAcc is a ← f(a, b).
func withAcc(name, doc string, f func(v *vector, a, b op)) instruction {
	return instruction{name: name, doc: doc, form: two, emit: func(v *vector, a, b int) {
		each(func(u int) { f(v, v.acc(a, u), v.acc(b, u)) })
	}}
}

// ofRows is a ← f(row 0, row 1).
func ofRows(name, doc string, f func(v *vector, x, y, a op)) instruction {
	return instruction{name: name, doc: doc, emit: func(v *vector, a, _ int) {
		v.row(0)
		v.row(1)
		each(func(u int) {
			v.load(v.at(0, u), v.acc(a, u))
			f(v, v.acc(a, u), v.at(1, u), v.acc(a, u))
		})
	}}
}

// fill sets a to m.
func (v *vector) fill(m, a op) {
	if x, ok := m.(operand.Mem); ok {
		v.load(x, a)
	} else {
		v.move(m, a)
	}
}

// inRegister loads m into the first temporary, unless it is there.
func (v *vector) inRegister(m op) op {
	if x, ok := m.(operand.Mem); ok {
		v.load(x, v.temp(0))
	}
	return v.temp(0)
}

// reversed sets a to m op a.
func reversed(v *vector, f func(x, y, d op), a, m op) { f(v.inRegister(m), a, a) }

// extremum is the IEEE minimum or maximum, NaN if an operand is, with -0 below 0. The processor's is its second operand
// where both are zero or one is NaN.
func extremum(v *vector, f, merge func(x, y, d op), a, m op) {
	x, t, r, nan := v.inRegister(m), v.temp(1), v.temp(2), v.temp(3)
	f(a, x, t)
	f(x, a, r)
	merge(t, r, t)
	if v.wide() {
		by(v, v.VCMPPS, v.VCMPPD)(operand.U8(unordered), x, a, reg.K1)
		by(v, v.VADDPS, v.VADDPD)(x, a, reg.K1, t) // of which one is NaN
		v.move(t, a)
		return
	}
	by(v, v.VCMPPS, v.VCMPPD)(operand.U8(unordered), x, a, nan)
	v.or(t, nan, a)
}

func compare(name, doc string, predicate int) []instruction {
	return withRow(name, doc, func(v *vector, a, m op) { v.truth(predicate, a, m, a) })
}

// blend is a ← row 1 where row 0 is, or is not, false, followed by the same with scalar 0 for row 1.
func blend(name, doc string, predicate int) []instruction {
	work := func(scalar bool) func(v *vector, a, _ int) {
		return func(v *vector, a, _ int) {
			cond, none, y, t := v.temp(0), v.temp(1), v.temp(2), v.temp(3)
			v.row(0)
			if scalar {
				v.scalar(0, y)
			} else {
				v.row(1)
			}
			v.xor(none, none, none)
			each(func(u int) {
				v.load(v.at(0, u), cond)
				if !scalar {
					v.load(v.at(1, u), y)
				}
				v.where(predicate, cond, none, y, v.acc(a, u), t)
			})
		}
	}
	return []instruction{{name: name, doc: doc, emit: work(false)},
		{name: name + "Scalar", doc: strings.ReplaceAll(doc, "row 1", "scalar 0"), emit: work(true)}}
}

// sum adds the elements of a, converted to float64, to the 32 lanes at row 0: element i to lane i mod 32.
func sum(name, doc string, square bool) instruction {
	return instruction{name: name, doc: doc, single: true, emit: func(v *vector, a, _ int) {
		v.fixed(0)
		groups := 32 * 8 / v.width // of lanes that are a register
		for g := range groups {
			total := v.temp(1)
			v.VMOVUPD(v.at(0, g), total)
			for h := g; h < 2*vectors; h += groups { // halves of the accumulator
				x, t := v.acc(a, h/2), v.temp(0)
				switch {
				case h%2 == 0:
					v.VCVTPS2PD(v.half(x), t)
				case v.wide():
					v.VEXTRACTF64X4(operand.U8(1), x, v.half(t))
					v.VCVTPS2PD(v.half(t), t)
				default:
					v.VEXTRACTF128(operand.U8(1), x, v.half(t))
					v.VCVTPS2PD(v.half(t), t)
				}
				if square {
					v.VMULPD(t, t, t)
				}
				v.VADDPD(t, total, total)
			}
			v.VMOVUPD(total, v.at(0, g))
		}
	}}
}

// axpby is a ← f(b)·scalar 0 + array 0·scalar 1.
func axpby(name, doc string, square bool) instruction {
	return instruction{name: name, doc: doc, form: twice, emit: func(v *vector, a, b int) {
		s, t, y := v.temp(0), v.temp(1), v.temp(2)
		v.array(0)
		v.scalar(0, s)
		v.scalar(1, t)
		each(func(u int) {
			x := v.acc(b, u)
			v.mul(t, v.at(0, u), y)
			if square {
				v.mul(x, x, v.acc(a, u))
				x = v.acc(a, u)
			}
			v.mul(x, s, v.acc(a, u))
			v.add(v.acc(a, u), y, v.acc(a, u))
		})
	}}
}

// along is a ← f(array 0, a·scalar 0).
func along(name, doc string, f func(v *vector, m, x op)) instruction {
	return instruction{name: name, doc: doc, emit: func(v *vector, a, _ int) {
		v.array(0)
		v.scalar(0, v.temp(0))
		each(func(u int) {
			x := v.acc(a, u)
			v.mul(x, v.temp(0), x)
			f(v, v.at(0, u), x)
		})
	}}
}

// storing are the instructions that can also store what they compute: results of the expressions that new values end with.
var storing = []string{"Add", "AddScalar", "RevSub", "Max", "Axpby", "SquareAxpby", "AddTo", "SubFrom", "SubFromScaled"}

// stored is an instruction, and at its end array 1 ← a.
func stored(in instruction) instruction {
	compute := in.emit
	in.name, in.doc = in.name+"Store", "array 1 ← "+in.doc
	in.emit = func(v *vector, a, b int) {
		compute(v, a, b)
		v.array(1)
		each(func(u int) { v.store(u, v.acc(a, u), v.at(1, u)) })
	}
	return in
}

// overRoot is a ← a / (√b + scalar 0), with b and a scaled first.
func overRoot(name, doc string, scaleB, scaleA bool) instruction {
	return instruction{name: name, doc: doc, form: two, emit: func(v *vector, a, b int) {
		e, s, r, t := v.temp(0), v.temp(1), v.temp(2), v.temp(3)
		v.scalar(0, e)
		if scaleB {
			v.scalar(1, s)
		}
		if scaleA {
			v.scalar(2, r)
		}
		each(func(u int) {
			x, root := v.acc(a, u), op(v.acc(b, u))
			if scaleB {
				v.mul(root, s, t)
				root = t
			}
			v.sqrt(root, t)
			v.add(t, e, t)
			if scaleA {
				v.mul(x, r, x)
			}
			v.div(x, t, x)
		})
	}}
}

func instructions() []instruction {
	withZero := func(v *vector, f func(x op)) { v.xor(v.temp(0), v.temp(0), v.temp(0)); f(v.temp(0)) }
	all := slices.Concat([]instruction{
		unary("Neg", "a ← −a", func(v *vector, a op) { v.xor(a, v.constant("signs"), a) }),
		unary("Square", "a ← a²", func(v *vector, a op) { v.mul(a, a, a) }),
		unary("Sqrt", "a ← √a", func(v *vector, a op) { v.sqrt(a, a) }),
		unary("Abs", "a ← |a|", func(v *vector, a op) { v.and(a, v.constant("magnitudes"), a) }),
		unary("Sign", "a ← sign a", func(v *vector, a op) {
			withZero(v, func(zero op) {
				one := v.temp(1)
				v.and(a, v.constant("signs"), one)
				v.or(one, v.constant("ones"), one)
				v.where(differ, a, zero, one, a, v.temp(2))
			})
		}),
		unary("Floor", "a ← ⌊a⌋", func(v *vector, a op) {
			if v.wide() {
				by(v, v.VRNDSCALEPS, v.VRNDSCALEPD)(operand.U8(9), a, a)
			} else {
				by(v, v.VROUNDPS, v.VROUNDPD)(operand.U8(9), a, a)
			}
		}),
		unary("IsFinite", "a ← a−a = 0", func(v *vector, a op) {
			withZero(v, func(zero op) { v.sub(a, a, a); v.truth(equal, a, zero, a) })
		}),
		unary("Not", "a ← a = 0", func(v *vector, a op) {
			withZero(v, func(zero op) { v.truth(equal, a, zero, a) })
		}),

		withAcc("AddAcc", "a ← a + b", func(v *vector, a, b op) { v.add(a, b, a) }),
		withAcc("SubAcc", "a ← a − b", func(v *vector, a, b op) { v.sub(a, b, a) }),
		withAcc("RevSubAcc", "a ← b − a", func(v *vector, a, b op) { v.sub(b, a, a) }),
		withAcc("MulAcc", "a ← a · b", func(v *vector, a, b op) { v.mul(a, b, a) }),
		withAcc("DivAcc", "a ← a / b", func(v *vector, a, b op) { v.div(a, b, a) }),
		withAcc("RevDivAcc", "a ← b / a", func(v *vector, a, b op) { v.div(b, a, a) }),
		withAcc("Move", "a ← b", func(v *vector, a, b op) { v.move(b, a) }),
	},
		withRow("Load", "a ← row", func(v *vector, a, m op) { v.fill(m, a) }),
		withRow("Add", "a ← a + row", func(v *vector, a, m op) { v.add(a, m, a) }),
		withRow("Sub", "a ← a − row", func(v *vector, a, m op) { v.sub(a, m, a) }),
		withRow("RevSub", "a ← row − a", func(v *vector, a, m op) { reversed(v, v.sub, a, m) }),
		withRow("Mul", "a ← a · row", func(v *vector, a, m op) { v.mul(a, m, a) }),
		withRow("Div", "a ← a / row", func(v *vector, a, m op) { v.div(a, m, a) }),
		withRow("RevDiv", "a ← row / a", func(v *vector, a, m op) { reversed(v, v.div, a, m) }),
		withRow("Min", "a ← min(a, row)", func(v *vector, a, m op) { extremum(v, v.min, v.or, a, m) }),
		withRow("Max", "a ← max(a, row)", func(v *vector, a, m op) { extremum(v, v.max, v.and, a, m) }),
		compare("Less", "a ← a < row", less),
		compare("LessEqual", "a ← a ≤ row", lessEqual),
		compare("Greater", "a ← a > row", greater),
		compare("GreaterEqual", "a ← a ≥ row", greaterEqual),
		compare("Equal", "a ← a = row", equal),
		compare("NotEqual", "a ← a ≠ row", notEqual),
		withRow("And", "a ← a ∧ row", func(v *vector, a, m op) { v.and(a, m, a) }),
		withRow("Or", "a ← a ∨ row", func(v *vector, a, m op) { v.or(a, m, a) }),
		blend("Else", "a ← a where row 0 is true, else row 1", equal),
		blend("Then", "a ← row 1 where row 0 is true, else a", notEqual),
		[]instruction{
			{name: "Store", doc: "row 0 ← a", emit: func(v *vector, a, _ int) {
				v.row(0)
				each(func(u int) { v.store(u, v.acc(a, u), v.at(0, u)) })
			}},
			{name: "PutAside", doc: "row 0 ← a, whatever the mask", emit: func(v *vector, a, _ int) {
				v.row(0)
				each(func(u int) { v.storeAll(v.acc(a, u), v.at(0, u)) })
			}},
			{name: "Fetch", doc: "brings arrays 0 and 1 into the cache", form: none, emit: func(v *vector, _, _ int) {
				v.array(0)
				v.array(1)
				for k := range 2 {
					for line := range vectors * v.width / 64 {
						m := v.at(k, 0)
						m.Disp = 64 * line
						v.PREFETCHT0(m)
					}
				}
			}},
			sum("Sum", "lanes at row ← lanes + a", false),
			sum("SumSquares", "lanes at row ← lanes + a²", true),

			ofRows("AddRows", "a ← row 0 + row 1", func(v *vector, x, y, a op) { v.add(x, y, a) }),
			ofRows("SubRows", "a ← row 0 − row 1", func(v *vector, x, y, a op) { v.sub(x, y, a) }),
			ofRows("MulRows", "a ← row 0 · row 1", func(v *vector, x, y, a op) { v.mul(x, y, a) }),
			{name: "ScaleRow", doc: "a ← row 0 · scalar 0", emit: func(v *vector, a, _ int) {
				v.row(0)
				v.scalar(0, v.temp(0))
				each(func(u int) { v.mul(v.temp(0), v.at(0, u), v.acc(a, u)) })
			}},

			axpby("Axpby", "a ← b·scalar 0 + array 0·scalar 1", false),
			axpby("SquareAxpby", "a ← b²·scalar 0 + array 0·scalar 1", true),
			along("AddTo", "a ← array 0 + a·scalar 0", func(v *vector, m, x op) { v.add(x, m, x) }),
			along("SubFrom", "a ← array 0 − a·scalar 0", func(v *vector, m, x op) {
				v.load(m.(operand.Mem), v.temp(1))
				v.sub(v.temp(1), x, x)
			}),
			{name: "SubFromScaled", doc: "a ← array 0·scalar 0 − a", emit: func(v *vector, a, _ int) {
				v.array(0)
				v.scalar(0, v.temp(0))
				each(func(u int) {
					v.mul(v.temp(0), v.at(0, u), v.temp(1))
					v.sub(v.temp(1), v.acc(a, u), v.acc(a, u))
				})
			}},
			{name: "AddScaled", doc: "a ← a + b·scalar 0", form: two, emit: func(v *vector, a, b int) {
				v.scalar(0, v.temp(0))
				each(func(u int) {
					v.mul(v.acc(b, u), v.temp(0), v.temp(1))
					v.add(v.acc(a, u), v.temp(1), v.acc(a, u))
				})
			}},
			{name: "AddScaledRow", doc: "a ← a + row 0·scalar 0", emit: func(v *vector, a, _ int) {
				v.row(0)
				v.scalar(0, v.temp(0))
				each(func(u int) {
					v.mul(v.temp(0), v.at(0, u), v.temp(1))
					v.add(v.acc(a, u), v.temp(1), v.acc(a, u))
				})
			}},
			overRoot("OverRoot", "a ← a / (√b + scalar 0)", false, false),
			overRoot("OverScaledRoot", "a ← a / (√(b·scalar 1) + scalar 0)", true, false),
			overRoot("ScaledOverScaledRoot", "a ← a·scalar 2 / (√(b·scalar 1) + scalar 0)", true, true),
			{name: "SqrtAdd", doc: "a ← √a + scalar 0", emit: func(v *vector, a, _ int) {
				v.scalar(0, v.temp(0))
				each(func(u int) {
					v.sqrt(v.acc(a, u), v.acc(a, u))
					v.add(v.acc(a, u), v.temp(0), v.acc(a, u))
				})
			}},
			{name: "ScaleSqrtAdd", doc: "a ← √(a·scalar 0) + scalar 1", emit: func(v *vector, a, _ int) {
				v.scalar(0, v.temp(0))
				v.scalar(1, v.temp(1))
				each(func(u int) {
					v.mul(v.acc(a, u), v.temp(0), v.acc(a, u))
					v.sqrt(v.acc(a, u), v.acc(a, u))
					v.add(v.acc(a, u), v.temp(1), v.acc(a, u))
				})
			}},
		})
	for _, in := range all {
		if slices.Contains(storing, in.name) {
			all = append(all, stored(in))
		}
	}
	return all
}
