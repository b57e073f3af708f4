package kernel

import "unsafe"

// DType is the element type of an array.
type DType uint8

// The element types. Arrays of integers hold one element: they are counters.
const (
	Float64 DType = iota
	Float32
	Int64
)

func (d DType) size() uintptr {
	if d == Float32 {
		return 4
	}
	return 8
}

// Array is a contiguous run of elements, borrowed for one run of a program.
type Array struct {
	Ptr  unsafe.Pointer
	Len  int
	Type DType
}

// Of makes an array of a slice.
func Of[T float32 | float64 | int64](s []T) Array {
	var z T
	t := Float64
	switch any(z).(type) {
	case float32:
		t = Float32
	case int64:
		t = Int64
	}
	return Array{unsafe.Pointer(unsafe.SliceData(s)), len(s), t}
}

// Elements views an array, of that type, as a slice.
func Elements[T float](a Array) []T { return unsafe.Slice((*T)(a.Ptr), a.Len) }

// Bytes is the half-open range of addresses that the array covers.
func (a Array) Bytes() (lo, hi uintptr) {
	lo = uintptr(a.Ptr)
	return lo, lo + uintptr(a.Len)*a.Type.size()
}

func (a Array) bytes() []byte { return unsafe.Slice((*byte)(a.Ptr), uintptr(a.Len)*a.Type.size()) }

// Copy copies the elements of src to dst, which has as many of the same type.
func Copy(dst, src Array) { copy(dst.bytes(), src.bytes()) }

// Scalar reads the first element.
func (a Array) Scalar() float64 {
	switch a.Type {
	case Float32:
		return float64(*(*float32)(a.Ptr))
	case Int64:
		return float64(*(*int64)(a.Ptr))
	}
	return *(*float64)(a.Ptr)
}

// setScalar rounds v to the array's type and writes its only element.
func (a Array) setScalar(v float64) {
	switch a.Type {
	case Float32:
		*(*float32)(a.Ptr) = float32(v)
	case Int64:
		*(*int64)(a.Ptr) = int64(v)
	default:
		*(*float64)(a.Ptr) = v
	}
}

// Zero sets all elements to zero.
func Zero(a Array) { clear(a.bytes()) }
