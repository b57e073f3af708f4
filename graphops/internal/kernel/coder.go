package kernel

import "slices"

// instruction is one of the machine, with indices for operands.
type instruction struct {
	handler uintptr
	op      opcode
	a, b    int
	rows    [2]int // or negative
	scalars [3]int
}

// coder translates a pass into instructions. It evaluates expressions depth first, the operand that needs more
// accumulators before the other (Sethi and Ullman 1970, https://doi.org/10.1145/321607.321620). A value is in an accumulator,
// in a row of memory, or in both; when accumulators run out one is put aside in a row of scratch memory.
type coder struct {
	p    *Program
	ps   *pass
	v    *variant
	code []instruction

	uses map[int]int // by node: how often its value is still wanted
	need map[int]int // by node: the accumulators that its evaluation takes
	accs [4]holder
	at   map[int]int // by node: its accumulator
	home map[int]int // by node: its row of scratch memory
	leaf map[int]int // by array: the node that reads it
	free []int       // rows of scratch memory

	rows    []rowRef
	rowOf   map[rowRef]int
	scalars []int // nodes
	needs   []int
	failed  bool // there is no code for this pass
}

// holder is the state of an accumulator.
type holder struct {
	node   int // whose value it holds; nothing, or taken by the instruction being made
	pinned bool
}

const (
	nothing = -1
	taken   = -2
)

func newCoder(p *Program, ps *pass, v *variant) *coder {
	c := &coder{p: p, ps: ps, v: v, rowOf: map[rowRef]int{}}
	c.restart()
	return c
}

// restart begins another piece of code over the same rows.
func (c *coder) restart() {
	c.code, c.uses, c.need, c.at, c.home = nil, map[int]int{}, map[int]int{}, map[int]int{}, map[int]int{}
	c.leaf, c.free = map[int]int{}, nil
	for i := range c.accs {
		c.accs[i] = holder{node: nothing}
	}
	for _, s := range c.ps.stores {
		c.count(s.node)
	}
	for _, r := range c.ps.sums {
		c.count(r.arg)
	}
}

// resolve finds the value that a node stands for where scalar conditions have chosen.
func (c *coder) resolve(i int) int {
	for c.p.nodes[i].Op == Select {
		n := c.p.nodes[i]
		k := slices.Index(c.ps.conditions, n.Args[0])
		if k < 0 {
			break
		}
		i = n.Args[2]
		if c.v.outcome>>k&1 == 1 {
			i = n.Args[1]
		}
	}
	return i
}

// args are the operands of a node.
func (c *coder) args(i int) (x, y, z int) {
	n := c.p.nodes[i]
	var a [3]int
	for k := range n.Op.Arity() {
		a[k] = c.resolve(n.Args[k])
	}
	return a[0], a[1], a[2]
}

// computed reports whether a node's value is computed in the pass, rather than read.
func (c *coder) computed(i int) bool {
	n := c.p.nodes[i]
	return n.Elem && n.Op != Leaf && !n.Op.Rearranges()
}

// count counts a use of a node and of what it is made of, and finds its need.
func (c *coder) count(i int) {
	i = c.resolve(i)
	if n := c.p.nodes[i]; n.Op == Leaf && n.Elem {
		c.leaf[n.Leaf] = i
	}
	if c.uses[i]++; c.uses[i] > 1 || !c.computed(i) {
		return
	}
	first, second := 1, 0
	for k := range c.p.nodes[i].Op.Arity() {
		arg := c.resolve(c.p.nodes[i].Args[k])
		c.count(arg)
		switch n := c.need[arg]; {
		case n > first:
			first, second = n, first
		case n > second:
			second = n
		}
	}
	if first == second {
		first++
	}
	c.need[i] = first
}

// emit adds an instruction with some rows, and returns it.
func (c *coder) emit(op opcode, a, b int, rows ...int) *instruction {
	in := instruction{op: op, a: a, b: b, rows: [2]int{-1, -1}}
	copy(in.rows[:], rows)
	c.code = append(c.code, in)
	return &c.code[len(c.code)-1]
}

// with gives an instruction scalar operands.
func (c *coder) with(in *instruction, nodes ...int) {
	for k, n := range nodes {
		i := slices.Index(c.scalars, n)
		if i < 0 {
			i = len(c.scalars)
			c.scalars = append(c.scalars, n)
		}
		in.scalars[k] = i
	}
}

// operate adds an instruction whose last operand is a value in memory or a scalar, for which there is another instruction
// next to the first.
func (c *coder) operate(op opcode, a, i int, rows ...int) {
	if c.p.nodes[i].Elem {
		c.emit(op, a, 0, append(rows, c.read(i))...)
		return
	}
	c.with(c.emit(op+1, a, 0, rows...), i)
}

// row makes a row of the table.
func (c *coder) row(r rowRef) int {
	i, ok := c.rowOf[r]
	if !ok {
		i = len(c.rows)
		c.rowOf[r] = i
		c.rows = append(c.rows, r)
	}
	return i
}

func (c *coder) scratchRow() int {
	c.rows = append(c.rows, rowRef{rowScratch, 0})
	return len(c.rows) - 1
}

// readable reports whether a value is in memory, or a scalar.
func (c *coder) readable(i int) bool {
	_, aside := c.home[i]
	return aside || !c.computed(i)
}

// read is the row of a tensor in memory.
func (c *coder) read(i int) int {
	if r, ok := c.home[i]; ok {
		return r
	}
	n := c.p.nodes[i]
	if n.Op == Leaf {
		return c.row(rowRef{rowArray, n.Leaf})
	}
	k := c.p.needWhole(i)
	if !slices.Contains(c.needs, k) {
		c.needs = append(c.needs, k)
	}
	return c.row(rowRef{rowArray, c.p.leaves + k})
}

// isArray reports whether a value is an array, which is not put aside.
func (c *coder) isArray(i int) bool {
	_, aside := c.home[i]
	return c.p.nodes[i].Elem && !c.computed(i) && !aside
}

// done ends one use of a value.
func (c *coder) done(i int) {
	if c.uses[i]--; c.uses[i] > 0 {
		return
	}
	if a, ok := c.at[i]; ok {
		c.drop(a)
	}
	if r, ok := c.home[i]; ok {
		delete(c.home, i)
		c.free = append(c.free, r)
	}
}

// drop forgets what an accumulator holds.
func (c *coder) drop(a int) {
	if i := c.accs[a].node; i >= 0 {
		delete(c.at, i)
	}
	c.accs[a] = holder{node: nothing}
}

// bind says that a taken accumulator holds a node's value.
func (c *coder) bind(i, a int) int {
	c.accs[a] = holder{node: i}
	c.at[i] = a
	return a
}

// take finds an accumulator for the instruction being made.
func (c *coder) take() int {
	best := nothing
	for a, h := range c.accs[:c.p.machine.accumulators] {
		if h.node == nothing {
			c.accs[a].node = taken
			return a
		}
		if h.node >= 0 && !h.pinned && (best < 0 || c.readable(h.node) && !c.readable(c.accs[best].node)) {
			best = a
		}
	}
	if best < 0 {
		c.failed = true
		return 0
	}
	if i := c.accs[best].node; !c.readable(i) {
		c.putAside(i)
	}
	c.drop(best)
	c.accs[best].node = taken
	return best
}

// putAside copies the value of an accumulator to a row.
func (c *coder) putAside(i int) {
	var r int
	if n := len(c.free); n > 0 {
		r, c.free = c.free[n-1], c.free[:n-1]
	} else {
		r = c.scratchRow()
	}
	c.emit(opPutAside, c.at[i], 0, r)
	c.home[i] = r
}

// inMemory makes sure that a value is in memory, or a scalar.
func (c *coder) inMemory(i int) {
	if !c.readable(i) {
		c.load(i)
		c.putAside(i)
	}
}

// load makes sure that a value is in an accumulator.
func (c *coder) load(i int) int {
	if a, ok := c.at[i]; ok {
		return a
	}
	if c.readable(i) {
		a := c.take()
		c.operate(opLoad, a, i)
		return c.bind(i, a)
	}
	return c.eval(i)
}

// both evaluates two operands that are not in memory, the more needy first.
func (c *coder) both(x, y int) {
	if c.need[x] < c.need[y] {
		x, y = y, x
	}
	c.evaluated(x)
	c.evaluated(y)
}

func (c *coder) evaluated(i int) {
	if !c.readable(i) {
		c.load(i)
	}
}

// own gives an accumulator with a value that may be overwritten, and ends one use of the value.
func (c *coder) own(i int) int {
	a := c.load(i)
	if c.uses[i] > 1 && !c.readable(i) {
		c.accs[a].pinned = true
		b := c.take()
		c.accs[a].pinned = false
		c.emit(opMove, b, a)
		c.uses[i]--
		return b
	}
	delete(c.at, i)
	c.accs[a] = holder{node: taken}
	c.done(i)
	return a
}

// store writes a value to the target of store k. A value there that is still wanted is put aside first.
func (c *coder) store(k, i int) {
	a := c.load(i)
	made := len(c.code)
	if old, ok := c.leaf[c.ps.stores[k].array]; ok && c.uses[old] > 0 && old != i {
		if _, aside := c.home[old]; !aside {
			c.accs[a].pinned = true
			c.load(old)
			c.putAside(old)
			c.accs[a].pinned = false
		}
	}
	row := c.row(rowRef{rowStore, k})
	if last := made - 1; last >= 0 && len(c.code) == made && c.code[last].a == a && storing[c.code[last].op] != 0 {
		c.code[last].op, c.code[last].rows[1] = storing[c.code[last].op], row
	} else {
		c.emit(opStore, a, 0, row)
	}
	c.done(i)
}

// leave puts a value into a row, for good.
func (c *coder) leave(i, row int) {
	c.emit(opPutAside, c.load(i), 0, row)
	c.done(i)
}
