package graphops

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"math"
	"strings"
	"weak"

	"github.com/chewxy/hm"
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// children are the operands of a node, in order and with repetition.
func children(n *gorgonia.Node) gorgonia.Nodes {
	if n.Graph() == nil {
		return nil
	}
	settle(n)
	it := n.Graph().From(n.ID())
	if it == nil {
		return nil
	}
	out := make(gorgonia.Nodes, 0, it.Len())
	for it.Next() {
		out = append(out, it.Node().(*gorgonia.Node))
	}
	return out
}

// hashCode predicts gorgonia.Node.Hashcode for a node that does not exist yet. It matters since a compiled program runs only
// one of two nodes with equal 32-bit hashes: a node of ours must never share one with a different node.
func hashCode(t hm.Type, shape tensor.Shape, identity func(io.Writer), kids gorgonia.Nodes) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%v%v", t, shape)
	identity(h)
	var b [4]byte
	h.Write([]byte{byte(len(kids))})
	for _, k := range kids {
		binary.LittleEndian.PutUint32(b[:], k.Hashcode())
		h.Write(b[:])
	}
	return h.Sum32()
}

// names are those of a graph's nodes, for one who asks often. A node that is given another name afterwards goes unnoticed,
// which does no harm: what Gorgonia goes by is the hash.
type names struct {
	graph weak.Pointer[gorgonia.ExprGraph]
	nodes int
	known map[string]bool
}

func (s *names) has(g *gorgonia.ExprGraph, name string) bool {
	all := g.AllNodes()
	if s.graph.Value() != g || s.nodes > len(all) {
		*s = names{graph: weak.Make(g), known: map[string]bool{}}
	}
	for _, n := range all[s.nodes:] {
		s.known[n.Name()] = true
	}
	s.nodes = len(all)
	return s.known[name]
}

// newInput makes an input node that no other node of the graph is merged with: where the name or the hash is taken, a number
// is appended.
func newInput(g *gorgonia.ExprGraph, dt tensor.Dtype, shape tensor.Shape, name string) (*gorgonia.Node, error) {
	return new(names).newInput(g, dt, shape, name)
}

func (s *names) newInput(g *gorgonia.ExprGraph, dt tensor.Dtype, shape tensor.Shape, name string) (n *gorgonia.Node, err error) {
	defer rescue(&err, "a node for "+name)
	t := typeOf(dt, shape)
	unique := name
	for i := 2; ; i++ {
		h := hashCode(t, shape, func(w io.Writer) { io.WriteString(w, unique) }, nil)
		if !s.has(g, unique) && taken(g, h) == nil {
			break
		}
		unique = fmt.Sprintf("%s#%d", name, i)
	}
	defer soon(g, 1)()
	return gorgonia.NewTensor(g, dt, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(unique)), nil
}

func typeOf(dt tensor.Dtype, shape tensor.Shape) hm.Type {
	if shape.IsScalar() {
		return dt
	}
	return gorgonia.TensorType{Dims: len(shape), Of: dt}
}

// constantOp is a float64 constant. It is no Gorgonia constant, since those are merged across dtypes, and no input, which a
// user could give another value. Its operand only says on which graph it is: Gorgonia loses operations without any.
type constantOp struct {
	op
	v float64
}

func constant(v float64, on *gorgonia.Node) (*gorgonia.Node, error) {
	o := &constantOp{newOp(fmt.Sprintf("const %v %x", v, math.Float64bits(v)), gorgonia.Nodes{on}, tensor.Float64, tensor.ScalarShape()), v}
	return apply(o, &o.op, true, on)
}

func (o *constantOp) Do(...gorgonia.Value) (gorgonia.Value, error) { return gorgonia.NewF64(o.v), nil }

// op is the part that all our operations share: a name, a type, a shape. Our operations are SDOps, so that differentiating
// other parts of the graph does not fail on them.
type op struct {
	name string
	in   []hm.Type
	out  hm.Type
	dims tensor.Shape
	salt uint32 // sets the hash apart from those of other nodes
	node int64  // the id of its node
}

func newOp(name string, kids gorgonia.Nodes, out hm.Type, shape tensor.Shape) op {
	o := op{name: name, out: out, dims: shape}
	for _, k := range kids {
		o.in = append(o.in, k.Type())
	}
	return o
}

func (o *op) Arity() int { return len(o.in) }

// Type is made anew at each call, as Gorgonia's type inference hands it back to a pool.
func (o *op) Type() hm.Type {
	return hm.NewFnType(append(append(make([]hm.Type, 0, len(o.in)+1), o.in...), o.out)...)
}

func (o *op) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) { return o.dims.Clone(), nil }
func (o *op) ReturnsPtr() bool                                      { return false }
func (o *op) CallsExtern() bool                                     { return false }
func (o *op) OverwritesInput() int                                  { return -1 }
func (o *op) String() string                                        { return o.name }
func (o *op) WriteHash(h hash.Hash)                                 { o.identity(h) }
func (o *op) identity(w io.Writer)                                  { fmt.Fprintf(w, "optimop/%s/%d", o.name, o.salt) }
func (o *op) DiffWRT(n int) []bool                                  { return make([]bool, n) }

// newValue makes a value of the operation's shape for a result, zero.
func (o *op) newValue(dt tensor.Dtype) gorgonia.Value {
	switch {
	case !o.dims.IsScalar():
		return tensor.New(tensor.Of(dt), tensor.WithShape(o.dims...))
	case dt == tensor.Float32:
		return gorgonia.NewF32(0)
	}
	return gorgonia.NewF64(0)
}

func (o *op) Hashcode() uint32 {
	h := fnv.New32a()
	o.identity(h)
	return h.Sum32()
}

func (o *op) SymDiff(gorgonia.Nodes, *gorgonia.Node, *gorgonia.Node) (gorgonia.Nodes, error) {
	return nil, errors.Errorf("graphops: %s has no derivative", o.name)
}

// apply adds an operation to the graph. self is the operation, base its op part. A pure operation may turn out to be an
// existing node; any other gets a hash of its own. It is gorgonia.ApplyOp without type inference: our operations know their
// types, and for the thousands of operands of a commit it takes minutes.
func apply(self gorgonia.Op, base *op, pure bool, kids ...*gorgonia.Node) (n *gorgonia.Node, err error) {
	defer rescue(&err, base.name)
	g := kids[0].Graph()
	for {
		old := taken(g, hashCode(base.out, base.dims, base.identity, kids))
		if old == nil || pure && same(old, self, kids) {
			break
		}
		base.salt++
	}
	defer soon(g, 1)()
	n = gorgonia.NewUniqueNode(gorgonia.WithType(base.out), gorgonia.WithOp(self), gorgonia.WithChildren(kids), gorgonia.In(g),
		gorgonia.WithShape(base.dims...))
	base.node = n.ID()
	return n, nil
}

// same reports whether a node already is the operation on the same operands.
func same(n *gorgonia.Node, self gorgonia.Op, kids gorgonia.Nodes) bool {
	if n.Op() == nil || n.Op().String() != self.String() || n.Op().Hashcode() != self.Hashcode() {
		return false
	}
	have := children(n)
	for i := range kids {
		if len(have) != len(kids) || have[i] != kids[i] {
			return false
		}
	}
	return true
}

// rescue turns a panic of an operation in a run into an error. A tape machine runs operations on a goroutine of its own, where a panic
// would end the process.
func (o *op) rescue(err *error, in []gorgonia.Value) {
	if r := recover(); r != nil {
		*err = errors.Errorf("graphops: %s (node %d, of %s): %v", o.name, o.node, forms(in), r)
	}
}

// wrong is the error of an operand that cannot be used.
func (o *op) wrong(err error, operand int) error {
	return errors.Wrapf(err, "graphops: %s (node %d): operand %d", o.name, o.node, operand)
}

// forms are the dtypes and shapes of values, of not too many.
func forms(in []gorgonia.Value) string {
	var all []string
	for i, v := range in {
		if i == 8 {
			all = append(all, fmt.Sprintf("and %d more", len(in)-i))
			break
		}
		all = append(all, form(v))
	}
	return strings.Join(all, ", ")
}

func form(v gorgonia.Value) (text string) {
	defer func() {
		if recover() != nil { // a nil pointer
			text = fmt.Sprintf("an unusable %T", v)
		}
	}()
	return fmt.Sprintf("%v %v", v.Dtype(), v.Shape())
}

// rescue turns a panic of Gorgonia's into an error.
func rescue(err *error, doing string) {
	if r := recover(); r != nil {
		*err = errors.Errorf("graphops: %s: %v", doing, r)
	}
}
