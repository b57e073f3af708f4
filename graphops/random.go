package graphops

import (
	"math"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops/internal/kernel"
)

// TruncatedNormal is an expression of random numbers in the dtype and shape of e, whose own value it does not read: standard
// normal numbers, of which those beyond ±2 do not occur. Their mean is 0, their standard deviation 0.8796.
//
// The numbers are a function of seed and draw, which are scalars, of the name of the stream and of the element's index: the same
// in every host, whatever else is computed and by how many workers. Another seed, draw or stream gives other numbers, which have
// nothing to do with the first. They are those of Philox4x32-10 (Salmon et al. 2011), by the inverse of the normal distribution,
// rounded to the dtype. The expression is a constant to derivatives.
func (e Expr) TruncatedNormal(seed, draw Expr, stream string) Expr {
	for _, x := range []Expr{e, seed, draw} {
		if err := x.Err(); err != nil {
			return broken(err)
		}
	}
	if e.x.scalar || !seed.x.scalar || !draw.x.scalar {
		return broken(errors.New("graphops: TruncatedNormal needs an elementwise expression, for its shape, and scalars: seed and draw"))
	}
	if e.x.form != wholeForm {
		return broken(errors.New("graphops: TruncatedNormal needs a whole tensor, not some rows of one"))
	}
	return Expr{&expr{op: kernel.TruncatedNormal, args: []*expr{seed.x, draw.x}, dt: e.x.dt, shape: e.x.shape, dims: stream}}
}

// Generator is a source of random numbers for operations of graphs. Its state are two numbers of a store: <name>/seed, a
// hyperparameter, and <name>/run, a counter. All numbers of a run are a function of these, so that a run with the same state
// repeats them, and with a saved state training goes on as if it had never stopped.
type Generator struct {
	name string
	seed float64
	from *State // seed
	run  *State
}

// NewGenerator makes a generator with a state in the store: one of each name. The magnitude of the seed may be up to 2⁵³.
func NewGenerator(s *Store, name string, seed int64) (*Generator, error) {
	switch {
	case s == nil:
		return nil, errors.New("graphops: NewGenerator: the store is nil")
	case seed < -1<<53 || seed > 1<<53:
		return nil, errors.Errorf("graphops: the seed %d of generator %q is too large: its magnitude may be up to 2^53", seed, name)
	case s.Lookup(name+"/seed") != nil || s.Lookup(name+"/run") != nil:
		return nil, errors.Errorf("graphops: the store already has a generator %q", name)
	}
	g := &Generator{name: name, seed: float64(seed)}
	var err error
	if g.run, err = s.Counter(name + "/run"); err != nil {
		return nil, err
	}
	g.from, err = s.Hyper(name+"/seed", &g.seed, func(v float64) error {
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return errors.Errorf("graphops: the seed of generator %q is %v; it must be a whole number", name, v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Update makes the next run another one: it counts the run, as part of a commit on a graph. Without it every run has the same
// random numbers. solvers' Minimize adds it by itself.
func (g *Generator) Update(graph *gorgonia.ExprGraph) (Update, error) {
	if g == nil || graph == nil {
		return Update{}, errors.New("graphops: Update of a nil generator, or on a nil graph")
	}
	n, err := g.run.Node(graph)
	if err != nil {
		return Update{}, err
	}
	return Update{n, ScalarOf(n).Add(Const(1))}, nil
}

// Next makes the next run another one, where no commit does: for those who train with Solver.Step.
func (g *Generator) Next() error {
	if g == nil {
		return errors.New("graphops: Next of a nil generator")
	}
	v, err := g.run.Value()
	if err != nil {
		return err
	}
	n, err := ScalarValue(v)
	if err != nil {
		return err
	}
	return g.run.Set(n + 1)
}

// States are the generator's seed and its count of runs.
func (g *Generator) States() []*State { return []*State{g.from, g.run} }

// Generators are those of all random operations that the nodes depend on, each once, in the order in which the operations were
// made.
func Generators(roots ...*gorgonia.Node) (gs []*Generator) {
	seen := map[*gorgonia.Node]bool{}
	var random gorgonia.Nodes
	var walk func(n *gorgonia.Node)
	walk = func(n *gorgonia.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if _, ok := n.Op().(*dropout); ok {
			random = append(random, n)
		}
		for _, k := range children(n) {
			walk(k)
		}
	}
	for _, r := range roots {
		walk(r)
	}
	slices.SortFunc(random, func(a, b *gorgonia.Node) int { return int(a.ID() - b.ID()) })
	for _, n := range random {
		if g := n.Op().(*dropout).gen; !slices.Contains(gs, g) {
			gs = append(gs, g)
		}
	}
	return gs
}
