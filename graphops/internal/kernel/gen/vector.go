package main

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The registers of the machine. run, in main.go, sets them; handlers may change the pointers only.
var (
	code    = reg.RDI // the present record
	offset  = reg.RSI // of the strip in its arrays, in bytes
	pointer = []reg.GPPhysical{reg.R10, reg.R11}
	masks   = []reg.Register{reg.K2, reg.K3, reg.K4, reg.K5} // of the elements that are stored, with AVX-512
)

// The layout of a record; machine.go has the same.
const (
	recordSize    = 64
	recordRows    = 8  // two of: the address of a row, and which bits of the offset are added to it
	recordScalars = 40 // three
)

// vector is an instruction set and an element type. A strip is vectors registers of width bytes; accumulators hold one
// strip each, and the last registers are temporaries.
type vector struct {
	*build.Context
	suffix       string
	width        int
	accumulators int
	double       bool
	registers    []reg.VecPhysical
	low          []reg.VecPhysical // the lower halves of the registers
	names        []string          // of all handlers, in the order of the table
	indexed      [2]bool           // whether a pointer is to the beginning of an array
}

const vectors = 4

func newVector(c *build.Context, wide, double bool) *vector {
	v := &vector{Context: c, double: double, width: 32, accumulators: 3, suffix: "_32"}
	y := []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	v.registers = y
	v.low = []reg.VecPhysical{reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7, reg.X8, reg.X9, reg.X10, reg.X11, reg.X12, reg.X13, reg.X14, reg.X15}
	if wide {
		v.width, v.accumulators, v.low = 64, 4, append(y, make([]reg.VecPhysical, 4)...)
		v.registers = []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10,
			reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19}
		v.low[16], v.low[17], v.low[18], v.low[19] = reg.Y16, reg.Y17, reg.Y18, reg.Y19
	}
	if double {
		v.suffix = "_64"
	}
	return v
}

func (v *vector) wide() bool { return v.width == 64 }

// acc is register u of accumulator a.
func (v *vector) acc(a, u int) reg.VecPhysical { return v.registers[a*vectors+u] }

// temp is a temporary; there are four.
func (v *vector) temp(k int) reg.VecPhysical { return v.registers[v.accumulators*vectors+k] }

// half is the lower half of a register.
func (v *vector) half(r reg.VecPhysical) reg.VecPhysical {
	return v.low[slices.Index(v.registers, r)]
}

// by chooses the instruction for the element type.
func by[F any](v *vector, single, double F) F {
	if v.double {
		return double
	}
	return single
}

// handler begins a handler. Its operands are accumulators and rows of the record.
func (v *vector) handler(name string) {
	name += v.suffix
	v.names = append(v.names, name)
	v.Function(name)
	v.Attributes(attributes)
	v.Comment(name)
}

// row makes pointer[k] point at row k, of any kind.
func (v *vector) row(k int) {
	v.MOVQ(operand.Mem{Base: code, Disp: recordRows + 16*k + 8}, pointer[k])
	v.ANDQ(offset, pointer[k])
	v.ADDQ(operand.Mem{Base: code, Disp: recordRows + 16*k}, pointer[k])
	v.indexed[k] = false
}

// array does so for a row that is known to be an array.
func (v *vector) array(k int) {
	v.fixed(k)
	v.indexed[k] = true
}

// fixed does so for a row that is known to be the same in every strip.
func (v *vector) fixed(k int) {
	v.MOVQ(operand.Mem{Base: code, Disp: recordRows + 16*k}, pointer[k])
	v.indexed[k] = false
}

// at is register u of row k.
func (v *vector) at(k, u int) operand.Mem {
	m := operand.Mem{Base: pointer[k], Disp: u * v.width}
	if v.indexed[k] {
		m.Index, m.Scale = offset, 1
	}
	return m
}

// scalar broadcasts scalar k to a temporary.
func (v *vector) scalar(k int, to reg.VecPhysical) {
	by(v, v.VBROADCASTSS, v.VBROADCASTSD)(operand.Mem{Base: code, Disp: recordScalars + 8*k}, to)
}

func (v *vector) load(m operand.Mem, r operand.Op) { by(v, v.VMOVUPS, v.VMOVUPD)(m, r) }

// store writes register u of a strip, as far as the mask of the run goes.
func (v *vector) store(u int, r operand.Op, m operand.Mem) {
	if v.wide() {
		by(v, v.VMOVUPS, v.VMOVUPD)(r, masks[u], m)
	} else {
		v.storeAll(r, m)
	}
}

func (v *vector) storeAll(r operand.Op, m operand.Mem) { by(v, v.VMOVUPS, v.VMOVUPD)(r, m) }

func (v *vector) move(x, d operand.Op) { by(v, v.VMOVAPS, v.VMOVAPD)(x, d) }
func (v *vector) sqrt(x, d operand.Op) { by(v, v.VSQRTPS, v.VSQRTPD)(x, d) }

// The binary operations compute d = x op y; y may be memory.
func (v *vector) add(x, y, d operand.Op) { by(v, v.VADDPS, v.VADDPD)(y, x, d) }
func (v *vector) sub(x, y, d operand.Op) { by(v, v.VSUBPS, v.VSUBPD)(y, x, d) }
func (v *vector) mul(x, y, d operand.Op) { by(v, v.VMULPS, v.VMULPD)(y, x, d) }
func (v *vector) div(x, y, d operand.Op) { by(v, v.VDIVPS, v.VDIVPD)(y, x, d) }
func (v *vector) min(x, y, d operand.Op) { by(v, v.VMINPS, v.VMINPD)(y, x, d) }
func (v *vector) max(x, y, d operand.Op) { by(v, v.VMAXPS, v.VMAXPD)(y, x, d) }
func (v *vector) and(x, y, d operand.Op) { by(v, v.VANDPS, v.VANDPD)(y, x, d) }
func (v *vector) or(x, y, d operand.Op)  { by(v, v.VORPS, v.VORPD)(y, x, d) }
func (v *vector) xor(x, y, d operand.Op) { by(v, v.VXORPS, v.VXORPD)(y, x, d) }

// Predicates of comparisons.
const (
	equal        = 0x00
	unordered    = 0x03
	notEqual     = 0x04 // or unordered
	less         = 0x11
	lessEqual    = 0x12
	differ       = 0x0c // not equal, and ordered
	greaterEqual = 0x1d
	greater      = 0x1e
)

// truth sets d to 1 where x op y holds and to 0 elsewhere.
func (v *vector) truth(predicate int, x, y, d operand.Op) {
	p := operand.U8(predicate)
	if v.wide() {
		by(v, v.VCMPPS, v.VCMPPD)(p, y, x, reg.K1)
		by(v, v.VMOVUPS_Z, v.VMOVUPD_Z)(v.constant("ones"), reg.K1, d)
		return
	}
	by(v, v.VCMPPS, v.VCMPPD)(p, y, x, d)
	v.and(d, v.constant("ones"), d)
}

// where sets d to y where x op z holds. t is a temporary.
func (v *vector) where(predicate int, x, z, y, d, t operand.Op) {
	p := operand.U8(predicate)
	if v.wide() {
		by(v, v.VCMPPS, v.VCMPPD)(p, z, x, reg.K1)
		by(v, v.VMOVUPS, v.VMOVUPD)(y, reg.K1, d)
		return
	}
	by(v, v.VCMPPS, v.VCMPPD)(p, z, x, t)
	by(v, v.VBLENDVPS, v.VBLENDVPD)(t, y, d, d)
}

// constant is a register full of a constant.
func (v *vector) constant(name string) operand.Mem {
	return operand.NewDataAddr(operand.NewStaticSymbol(fmt.Sprint(name, v.suffix)), 0)
}
