package graphops

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// rule is a derivative of our own for an operation of Gorgonia's that has none, or a wrong one. wrt says through which operands
// a gradient flows.
type rule struct {
	wrt  []bool
	diff diff
}

// diff gives the gradients of a node's operands from that of its value.
type diff func(n *gorgonia.Node, kids gorgonia.Nodes, grad *gorgonia.Node) (gorgonia.Nodes, error)

// opType is the name of the type of an operation of Gorgonia's; "" of any other.
func opType(o gorgonia.Op) string {
	name, ok := strings.CutPrefix(strings.TrimPrefix(fmt.Sprintf("%T", o), "*"), "gorgonia.")
	if !ok {
		return ""
	}
	return name
}

// ruleOf finds the rule for a node.
func ruleOf(n *gorgonia.Node) *rule {
	switch opType(n.Op()) {
	case "elemUnaryOp":
		switch n.Op().String() {
		case "log2": // Gorgonia divides by ln 2 where it should multiply
			return &rule{[]bool{true}, ofOne(func(x, y, grad Expr) Expr { return grad.Div(x.Mul(Const(math.Ln2))) })}
		case "invSqrt": // Gorgonia divides by y³ where it should multiply
			return &rule{[]bool{true}, ofOne(func(x, y, grad Expr) Expr { return grad.Mul(y.Mul(y.Square())).Mul(Const(-.5)) })}
		}
	case "linAlgBinOp":
		if strings.Contains(n.Op().String(), "⊗") { // Gorgonia multiplies the wrong operands
			return &rule{[]bool{true, true}, outerDiff}
		}
	case "repeatOp": // of an axis of length 1; Gorgonia drops the axis, and may sum over another one next
		return &rule{[]bool{true, false}, repeatDiff}
	case "reshapeOp": // Gorgonia's derivative shares memory with its operand, which another operation may write to
		return &rule{[]bool{true}, reshapeDiff}
	case "sliceIncrOp": // of a shape and what stands in the slice; Gorgonia takes the gradient of the one for that of the other
		return &rule{[]bool{false, true}, sliceSecond}
	case "byIndicesOpDiffOp": // of a shape, the gradients of the rows, and where these belong
		return &rule{[]bool{false, true, false}, byIndicesSecond}
	case "col2imOp": // sums up what im2col spread out
		return &rule{[]bool{true}, im2colSecond}
	case "softmaxDiffOp": // of the operand, which does not matter, the result and its gradient
		return &rule{[]bool{false, true, true}, softmaxSecond}
	}
	return nil
}

// ofOne makes a rule of the gradient of x for y = f(x).
func ofOne(f func(x, y, grad Expr) Expr) diff {
	return func(n *gorgonia.Node, kids gorgonia.Nodes, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		d, err := newExpander(n).expand(f(Of(kids[0]), Of(n), Of(grad)))
		return gorgonia.Nodes{d}, err
	}
}

// outerDiff gives the gradients of a and b in a·bᵀ.
func outerDiff(_ *gorgonia.Node, kids gorgonia.Nodes, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	da, err := gorgonia.Mul(grad, kids[1])
	if err != nil {
		return nil, err
	}
	t, err := gorgonia.Transpose(grad, 1, 0)
	if err != nil {
		return nil, err
	}
	db, err := gorgonia.Mul(t, kids[0])
	return gorgonia.Nodes{da, db}, err
}

func repeatDiff(n *gorgonia.Node, kids gorgonia.Nodes, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	ds, err := n.Op().(gorgonia.SDOp).SymDiff(kids, n, grad)
	if err == nil {
		ds[0], err = reshape(ds[0], kids[0].Shape())
	}
	return ds, err
}

func reshapeDiff(_ *gorgonia.Node, kids gorgonia.Nodes, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	d, err := reshape(grad, kids[0].Shape())
	return gorgonia.Nodes{d}, err
}

// sliceSecond takes the slice out of the gradient of the tensor that it was put in.
func sliceSecond(n *gorgonia.Node, kids gorgonia.Nodes, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	ds, err := n.Op().(gorgonia.SDOp).SymDiff(kids, n, grad)
	if err == nil {
		ds[0] = nil
	}
	return ds, err
}

func byIndicesSecond(n *gorgonia.Node, kids gorgonia.Nodes, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	d, err := gorgonia.ByIndices(grad, kids[2], int(field(n, "axis").Int()))
	return gorgonia.Nodes{nil, d, nil}, err
}

func im2colSecond(n *gorgonia.Node, _ gorgonia.Nodes, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	two := func(h, w string) tensor.Shape { return tensor.Shape{int(field(n, h).Int()), int(field(n, w).Int())} }
	kernel, pad, dilation := two("h", "w"), two("padH", "padW"), two("dilationH", "dilationW")
	d, err := gorgonia.Im2Col(grad, kernel, pad, two("strideH", "strideW"), dilation)
	return gorgonia.Nodes{d}, err
}

// softmaxSecond differentiates what SoftMax and LogSoftMax make of the gradient g of their result y: y·(g − Σgy), or
// g − exp(y)·Σg. h is the gradient of that.
func softmaxSecond(n *gorgonia.Node, kids gorgonia.Nodes, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	y, g, h := Of(kids[1]), Of(kids[2]), Of(grad)
	axis := int(field(n, "axis").Int())
	sum := func(e Expr) Expr { return e.SumAlong(axis).BroadcastTo(e.Shape()) }
	var dy, dg Expr
	if field(n, "isLog").Bool() {
		p := y.Exp()
		dy, dg = h.Mul(p).Mul(sum(g)).Neg(), h.Sub(sum(h.Mul(p)))
	} else {
		hy := sum(h.Mul(y))
		dy, dg = h.Mul(g.Sub(sum(g.Mul(y)))).Sub(g.Mul(hy)), y.Mul(h.Sub(hy))
	}
	x := newExpander(n)
	a, err := x.expand(dy)
	if err != nil {
		return nil, err
	}
	b, err := x.expand(dg)
	return gorgonia.Nodes{nil, a, b}, err
}

// field reads a private field of a node's operation.
func field(n *gorgonia.Node, name string) reflect.Value {
	return reflect.Indirect(reflect.ValueOf(n.Op())).FieldByName(name)
}

// noSecond names the operations whose derivative is an operation that has none itself, or a wrong one: DiffWRT of the
// derivative of batch normalisation, for one, says that it is constant.
func noSecond(o gorgonia.Op) (of string, ok bool) {
	switch opType(o) {
	case "maxPoolDiffOp":
		return "MaxPool1D or MaxPool2D", true
	case "avgPoolDiffOp":
		return "AveragePool1D or AveragePool2D", true
	case "batchnormDiffOp":
		return "BatchNorm", true
	case "groupNormDiffOp":
		return "GroupNorm", true
	case "sparsemaxDiffOp":
		return "Sparsemax", true
	case "dropoutDiffOp":
		return "Dropout", true
	case "upsampleDiffOp":
		return "Upsample2D", true
	case "ctcLossDiffOp":
		return "CTCLoss", true
	}
	return "", false
}

// refuseSecond is the error for a node that noSecond knows.
func refuseSecond(n *gorgonia.Node, of string) error {
	return errors.Errorf("graphops: node %d, %s, is the derivative of %s, which has no second derivative", n.ID(), nodeName(n), of)
}
