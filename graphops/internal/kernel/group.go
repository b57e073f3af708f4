package kernel

// Which stores, and which reductions, are one pass.

// class is what the members of a pass have in common.
type class struct {
	kind int // the condition of stores, the batch of reductions
	typ  DType
	n    int
	size int
}

// member is a store or a reduction.
type member struct {
	class class
	id    int
	node  int // whose value is wanted
	leaf  int // written, or negative
}

// groups joins members of one class that share work or a leaf for which shared holds: where one of them reads what another
// writes, such a group can mostly write in place. Groups and their members keep their order.
func (p *Program) groups(members []member, shared func(leaf int) bool) [][]int {
	type owned struct {
		class class
		node  int // or -1-leaf
	}
	parent := make([]int, len(members))
	find := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	owner := map[owned]int{}
	claim := func(m, node int) bool {
		key := owned{members[m].class, node}
		o, ok := owner[key]
		if !ok {
			owner[key] = m
			return true
		}
		a, b := find(m), find(o)
		parent[max(a, b)] = min(a, b)
		return false
	}
	var visit func(m, i int)
	visit = func(m, i int) {
		n := p.nodes[i]
		switch {
		case !n.Elem, n.Op.Rearranges():
		case n.Op == Leaf:
			if shared(n.Leaf) {
				claim(m, -1-n.Leaf)
			}
		case claim(m, i):
			for k := range n.Op.Arity() {
				visit(m, n.Args[k])
			}
		}
	}
	for i, m := range members {
		parent[i] = i
		if m.leaf >= 0 {
			claim(i, -1-m.leaf)
		}
		visit(i, m.node)
	}
	at := map[int]int{}
	var all [][]int
	for i, m := range members {
		root := find(i)
		g, ok := at[root]
		if !ok {
			g = len(all)
			at[root] = g
			all = append(all, nil)
		}
		all[g] = append(all[g], m.id)
	}
	return all
}

// batch is a set of reductions that are computed together: none needs the result of another, and they are needed under the
// same condition.
type batch struct {
	passes []*pass
	work   *work
}

const (
	always  = -1 // needed in every run
	nowhere = -2
)

// batchReductions finds the batches and their passes.
func (p *Program) batchReductions() {
	needed := make([]int, len(p.nodes)) // the condition under which a node is needed
	for i := range needed {
		needed[i] = nowhere
	}
	seen := map[int][]bool{}
	var visit func(cond, i int)
	visit = func(cond, i int) {
		if seen[cond] == nil {
			seen[cond] = make([]bool, len(p.nodes))
		}
		if seen[cond][i] {
			return
		}
		seen[cond][i] = true
		if needed[i] == nowhere {
			needed[i] = cond
		} else if needed[i] != cond {
			needed[i] = always
		}
		for k := range p.nodes[i].Op.Arity() {
			visit(cond, p.nodes[i].Args[k])
		}
	}
	for _, i := range p.checks {
		visit(always, i)
	}
	for _, s := range p.stores {
		visit(max(s.Cond, always), s.Node)
		if s.Cond >= 0 {
			visit(always, s.Cond)
		}
	}
	level := make([]int, len(p.nodes)) // reductions and whole values on the way, so that operands come first
	ids := map[[2]int]int{}
	var members []member
	p.batchOf = make([]*batch, len(p.nodes))
	for i, n := range p.nodes {
		for k := range n.Op.Arity() {
			level[i] = max(level[i], level[n.Args[k]])
		}
		if !n.Op.Reduces() || !p.nodes[n.Args[0]].Elem || needed[i] == nowhere {
			continue
		}
		level[i]++
		key := [2]int{level[i], needed[i]}
		id, ok := ids[key]
		if !ok {
			id = len(p.batches)
			ids[key] = id
			p.batches = append(p.batches, &batch{})
		}
		p.batchOf[i] = p.batches[id]
		arg := p.nodes[n.Args[0]]
		members = append(members, member{class{id, arg.Type, arg.Len, arg.Size}, i, n.Args[0], -1})
	}
	for _, group := range p.groups(members, func(int) bool { return true }) {
		b, arg := p.batchOf[group[0]], p.nodes[p.nodes[group[0]].Args[0]]
		ps := p.newPass(arg)
		for _, i := range group {
			ps.sums = append(ps.sums, result{node: i, arg: p.nodes[i].Args[0]})
		}
		p.finish(ps)
		b.passes = append(b.passes, ps)
	}
	for _, b := range p.batches {
		b.work = newWork(b.passes)
	}
}
