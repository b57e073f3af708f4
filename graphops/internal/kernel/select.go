package kernel

// Instruction selection.

// binary says which instructions compute a primitive of two operands: a ← a op row, a ← row op a, and where they exist
// a ← a op b and a ← b op a.
var binaries = map[Op]struct {
	row, reversed   opcode
	accumulators    bool
	acc, reverseAcc opcode
}{
	Add:          {opAdd, opAdd, true, opAddAcc, opAddAcc},
	Sub:          {opSub, opRevSub, true, opSubAcc, opRevSubAcc},
	Mul:          {opMul, opMul, true, opMulAcc, opMulAcc},
	Div:          {opDiv, opRevDiv, true, opDivAcc, opRevDivAcc},
	Min:          {row: opMin, reversed: opMin},
	Max:          {row: opMax, reversed: opMax},
	Less:         {row: opLess, reversed: opGreater},
	LessEqual:    {row: opLessEqual, reversed: opGreaterEqual},
	Greater:      {row: opGreater, reversed: opLess},
	GreaterEqual: {row: opGreaterEqual, reversed: opLessEqual},
	Equal:        {row: opEqual, reversed: opEqual},
	NotEqual:     {row: opNotEqual, reversed: opNotEqual},
	And:          {row: opAnd, reversed: opAnd},
	Or:           {row: opOr, reversed: opOr},
}

// sums compute a primitive of two arrays.
var sums = map[Op]opcode{Add: opAddRows, Sub: opSubRows, Mul: opMulRows}

var unaries = map[Op]opcode{Neg: opNeg, Square: opSquare, Sqrt: opSqrt, Abs: opAbs, Sign: opSign, Floor: opFloor, IsFinite: opIsFinite, Not: opNot}

// eval computes a node in an accumulator. Nodes that are operands of a fused instruction are passed over.
func (c *coder) eval(i int) int {
	if a, ok := c.fused(i); ok {
		return c.bind(i, a)
	}
	n := c.p.nodes[i]
	x, y, z := c.args(i)
	var a int
	switch b, ok := binaries[n.Op]; {
	case n.Op == Select:
		a = c.choose(x, y, z)
	case n.Op == Mul && x == y:
		c.uses[x]-- // of two
		a = c.own(x)
		c.emit(opSquare, a, 0)
	case ok && x == y:
		c.inMemory(x)
		a = c.own(x)
		c.operate(b.row, a, x)
		c.done(x)
	case ok:
		a = c.binary(n.Op, x, y)
	default:
		op, ok := unaries[n.Op]
		c.failed = c.failed || !ok
		a = c.own(x)
		c.emit(op, a, 0)
	}
	return c.bind(i, a)
}

func (c *coder) binary(op Op, x, y int) int {
	b := binaries[op]
	c.both(x, y)
	ax, inX := c.at[x]
	ay, inY := c.at[y]
	switch {
	case op == Mul && c.readable(x) && c.readable(y) && !inX && !inY && c.p.nodes[x].Elem != c.p.nodes[y].Elem:
		if !c.p.nodes[x].Elem {
			x, y = y, x
		}
		a := c.take()
		c.with(c.emit(opScaleRow, a, 0, c.read(x)), y)
		c.done(x)
		return a
	case sums[op] != 0 && !inX && !inY && c.readable(x) && c.readable(y) && c.p.nodes[x].Elem && c.p.nodes[y].Elem:
		a := c.take()
		c.emit(sums[op], a, 0, c.read(x), c.read(y))
		c.done(x)
		c.done(y)
		return a
	case b.accumulators && inX && inY:
		if c.uses[x] > 1 && c.uses[y] == 1 { // x is still wanted, y is not
			c.accs[ax].pinned = true
			a := c.own(y)
			c.accs[ax].pinned = false
			c.emit(b.reverseAcc, a, ax)
			c.done(x)
			return a
		}
		c.accs[ay].pinned = true
		a := c.own(x)
		c.accs[ay].pinned = false
		c.emit(b.acc, a, ay)
		c.done(y)
		return a
	case c.readable(x) && !c.readable(y):
		a := c.own(y)
		c.operate(b.reversed, a, x)
		c.done(x)
		return a
	}
	c.inMemory(y)
	a := c.own(x)
	c.operate(b.row, a, y)
	c.done(y)
	return a
}

// choose is Select by an elementwise condition.
func (c *coder) choose(cond, x, y int) int {
	if !c.p.nodes[cond].Elem {
		c.failed = true // more of them than variants tell apart
		return c.take()
	}
	c.inMemory(cond)
	var a int
	if c.both(x, y); c.readable(x) && !c.readable(y) {
		a = c.own(y)
		c.operate(opThen, a, x, c.read(cond))
		c.done(x)
	} else {
		c.inMemory(y)
		a = c.own(x)
		c.operate(opElse, a, y, c.read(cond))
		c.done(y)
	}
	c.done(cond)
	return a
}

// scaled takes apart a product with a scalar that only one instruction wants.
func (c *coder) scaled(i int) (x, scalar int, ok bool) {
	if c.p.nodes[i].Op != Mul || !c.only(i) {
		return 0, 0, false
	}
	x, s, _ := c.args(i)
	if !c.p.nodes[x].Elem {
		x, s = s, x
	}
	return x, s, c.p.nodes[x].Elem && !c.p.nodes[s].Elem
}

// only reports whether a value is computed for one instruction alone, so that it need not exist by itself.
func (c *coder) only(i int) bool {
	_, ready := c.at[i]
	return c.computed(i) && c.uses[i] == 1 && !ready && !c.readable(i)
}

// fused computes a node together with its operands, where an instruction does that.
func (c *coder) fused(i int) (a int, ok bool) {
	n := c.p.nodes[i]
	if n.Op != Add && n.Op != Sub && n.Op != Div {
		return 0, false
	}
	x, y, _ := c.args(i)
	if x == y {
		return 0, false
	}
	p, s, left := c.scaled(x)
	q, t, right := c.scaled(y)
	switch {
	case n.Op == Div:
		return c.overRoot(x, y)
	case n.Op == Sub && right && c.isArray(x):
		return c.along(opSubFrom, x, q, t), true
	case n.Op == Sub && left && c.isArray(p) && c.p.nodes[y].Elem:
		return c.along(opSubFromScaled, p, y, s), true
	case n.Op == Sub:
		return 0, false
	case left && right && c.isArray(p) && (!c.isArray(q) || c.uses[p] <= c.uses[q]):
		return c.axpby(q, t, p, s), true
	case left && right && c.isArray(q):
		return c.axpby(p, s, q, t), true
	case right && c.isArray(x):
		return c.along(opAddTo, x, q, t), true
	case left && c.isArray(y):
		return c.along(opAddTo, y, p, s), true
	case right && c.p.nodes[x].Elem:
		return c.addScaled(x, q, t), true
	case left && c.p.nodes[y].Elem:
		return c.addScaled(y, p, s), true
	}
	z, s, scaled, e, ok := c.root(i)
	if !ok {
		return 0, false
	}
	a = c.own(z)
	if scaled {
		c.with(c.emit(opScaleSqrtAdd, a, 0), s, e)
	} else {
		c.with(c.emit(opSqrtAdd, a, 0), e)
	}
	return a, true
}

// root takes apart √z + e or, scaled, √(z·s) + e.
func (c *coder) root(i int) (z, s int, scaled bool, e int, ok bool) {
	if c.p.nodes[i].Op != Add {
		return
	}
	r, e, _ := c.args(i)
	if c.p.nodes[r].Op != Sqrt {
		r, e = e, r
	}
	if c.p.nodes[r].Op != Sqrt || c.p.nodes[e].Elem || !c.only(r) {
		return
	}
	z, _, _ = c.args(r)
	if p, s, ok := c.scaled(z); ok {
		return p, s, true, e, true
	}
	return z, 0, false, e, true
}

// overRoot is x / (√z + e), with either scaled.
func (c *coder) overRoot(x, y int) (a int, ok bool) {
	z, s, scaled, e, ok := c.root(y)
	if !ok || !c.only(y) || !c.p.nodes[x].Elem {
		return 0, false
	}
	op, scalars := opOverRoot, []int{e, s}
	if scaled {
		op = opOverScaledRoot
		if p, r, ok := c.scaled(x); ok && p != z {
			op, x, scalars = opScaledOverScaledRoot, p, append(scalars, r)
		}
	} else {
		scalars = scalars[:1]
	}
	if x == z {
		return 0, false
	}
	c.both(x, z)
	b := c.load(z)
	c.accs[b].pinned = true
	a = c.own(x)
	c.accs[b].pinned = false
	c.with(c.emit(op, a, b), scalars...)
	c.done(z)
	return a, true
}

// axpby is x·s + base·t, where x may be a square.
func (c *coder) axpby(x, s, base, t int) int {
	op := opAxpby
	if c.p.nodes[x].Op == Square && c.only(x) {
		x, _, _ = c.args(x)
		op = opSquareAxpby
	}
	b := c.load(x)
	a := b
	if c.uses[x] > 1 {
		c.accs[b].pinned = true
		a = c.take()
		c.accs[b].pinned = false
	}
	c.with(c.emit(op, a, b, c.read(base)), s, t)
	c.done(x)
	c.accs[a].node = taken
	c.done(base)
	return a
}

// along is an instruction of an array, a value and a scalar.
func (c *coder) along(op opcode, base, x, s int) int {
	a := c.own(x)
	c.with(c.emit(op, a, 0, c.read(base)), s)
	c.done(base)
	return a
}

// addScaled is x + y·s.
func (c *coder) addScaled(x, y, s int) int {
	c.both(x, y)
	if c.readable(y) {
		row := c.read(y)
		a := c.own(x)
		c.with(c.emit(opAddScaledRow, a, 0, row), s)
		c.done(y)
		return a
	}
	b := c.load(y)
	c.accs[b].pinned = true
	a := c.own(x)
	c.accs[b].pinned = false
	c.with(c.emit(opAddScaled, a, b), s)
	c.done(y)
	return a
}

// accumulate adds a value to the lanes of a reduction.
func (c *coder) accumulate(op Op, i, row int) {
	if c.ps.typ == Float32 && (op == Sum || op == SumSquares) {
		a := c.load(i)
		c.emit(map[Op]opcode{Sum: opSum, SumSquares: opSumSquares}[op], a, 0, row)
		c.done(i)
		return
	}
	a := c.own(i)
	if op == SumSquares {
		c.emit(opSquare, a, 0)
	}
	c.emit(map[Op]opcode{Sum: opAdd, SumSquares: opAdd, MaxAll: opMax, All: opAnd}[op], a, 0, row)
	c.emit(opPutAside, a, 0, row)
	c.drop(a)
}
