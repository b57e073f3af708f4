package kernel

// Op is one primitive of an expression.
type Op uint8

// The primitives. An elementwise primitive computes in the dtype of its operands and rounds once; a scalar one computes
// in float64. Conditions are numbers: 0 is false, 1 is true.
const (
	Leaf  Op = iota // an array bound at each run
	Const           // a float64 constant

	Neg
	Square
	Sqrt
	Abs
	Sign // -1, 0 or 1; NaN of NaN
	Floor
	Exp
	Log
	Tanh
	Cos
	IsFinite
	Not

	Add
	Sub
	Mul
	Div
	Min // NaN if either operand is
	Max // NaN if either operand is
	Pow
	Less
	LessEqual
	Greater
	GreaterEqual
	Equal
	NotEqual
	And
	Or

	Select // a where the condition holds, else b

	Sum        // of all elements, in float64
	SumSquares // of the squares of all elements, squared in float64
	MaxAll     // largest element, -Inf of none, NaN if any is
	All        // 1 if every element is true

	MatMul       // of two matrices
	Transpose    // of a matrix
	SumAlong     // over some axes, which keep length 1; added in float64
	BroadcastTo  // repeats axes of length 1
	SingularPair // u·vᵀ of the largest singular value of a matrix

	TruncatedNormal // random numbers of two scalars, the seed and the number of the draw, and of the stream named by Dims
)

var names = [...]string{
	Leaf: "leaf", Const: "const",
	Neg: "neg", Square: "square", Sqrt: "sqrt", Abs: "abs", Sign: "sign", Floor: "floor", Exp: "exp", Log: "log",
	Tanh: "tanh", Cos: "cos", IsFinite: "isfinite", Not: "not",
	Add: "add", Sub: "sub", Mul: "mul", Div: "div", Min: "min", Max: "max", Pow: "pow", Less: "less",
	LessEqual: "lessequal", Greater: "greater", GreaterEqual: "greaterequal", Equal: "equal", NotEqual: "notequal",
	And: "and", Or: "or",
	Select: "select",
	Sum:    "sum", SumSquares: "sumsquares", MaxAll: "maxall", All: "all",
	MatMul: "matmul", Transpose: "transpose", SumAlong: "sumalong", BroadcastTo: "broadcast", SingularPair: "singularpair",
	TruncatedNormal: "truncatednormal",
}

func (o Op) String() string { return names[o] }

// Arity is the number of operands.
func (o Op) Arity() int {
	switch {
	case o <= Const:
		return 0
	case o <= Not:
		return 1
	case o <= Or:
		return 2
	case o == Select:
		return 3
	case o == MatMul, o == TruncatedNormal:
		return 2
	}
	return 1
}

// Reduces reports whether o turns all elements of its operand into one float64.
func (o Op) Reduces() bool { return o >= Sum && o <= All }

// Rearranges reports whether an element of the result of o depends on elements of its operands at other places, or on its own
// place, so that the result is computed as a whole before the passes that read it.
func (o Op) Rearranges() bool { return o >= MatMul }

// IsCondition reports whether the result of o is a truth value.
func (o Op) IsCondition() bool {
	return o == IsFinite || o == Not || (o >= Less && o <= Or) || o == All
}
