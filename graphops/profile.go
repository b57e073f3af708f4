package graphops

import (
	"reflect"
	"time"
	"unsafe"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// Profile measures the time of each operation of a machine.
type Profile struct{ rows []*ProfileRow }

// ProfileRow is what an operation took. Op is what it does, Node the name of its node.
type ProfileRow struct {
	Op    string
	Node  string
	Calls int
	Time  time.Duration
}

// NewProfile begins to measure the operations of a machine that NewMachine or NewEvalMachine made, which then costs some hundred
// nanoseconds for each operation and run.
func NewProfile(vm gorgonia.VM) (*Profile, error) {
	m, ok := vm.(*machine)
	if !ok {
		return nil, errors.Errorf("graphops: a %T has no profile; want a machine of NewMachine or NewEvalMachine", vm)
	}
	p := &Profile{}
	return p, p.instrument(m)
}

// Rows are the operations in the order in which they run, with what they took since NewProfile.
func (p *Profile) Rows() []ProfileRow {
	out := make([]ProfileRow, len(p.rows))
	for i, r := range p.rows {
		out[i] = *r
	}
	return out
}

// instrument puts a clock around the operation of each instruction of a tape machine. They are private: an error says that
// this is no longer Gorgonia 0.9.
func (p *Profile) instrument(m *machine) (err error) {
	defer rescue(&err, "the profile: Gorgonia's tape machine is not as expected")
	byID := map[int64]*gorgonia.Node{}
	for _, n := range m.nodes {
		byID[n.ID()] = n
	}
	code := reflect.ValueOf(m.VM).Elem().FieldByName("p").Elem().FieldByName("instructions")
	for i := range code.Len() {
		instr := code.Index(i).Elem()
		if instr.Kind() != reflect.Pointer || instr.Elem().Type().Name() != "execOp" {
			continue
		}
		f := instr.Elem().FieldByName("op")
		op := reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Interface().(*gorgonia.Op)
		row := &ProfileRow{Op: (*op).String(), Node: nodeName(byID[instr.Elem().FieldByName("id").Int()])}
		p.rows = append(p.rows, row)
		*op = row.around(*op)
	}
	return nil
}

// around makes an operation that measures another. It can write to memory that is there already if that can; the other way to
// do so, UnsafeDo, is one that tape machines never take.
func (r *ProfileRow) around(op gorgonia.Op) gorgonia.Op {
	t := timed{op, r}
	if p, ok := op.(gorgonia.UsePreallocDoer); ok {
		return struct {
			timed
			timedPrealloc
		}{t, timedPrealloc{p, r}}
	}
	return t
}

func (r *ProfileRow) measure(do func() (gorgonia.Value, error)) (gorgonia.Value, error) {
	start := time.Now()
	v, err := do()
	r.Calls++
	r.Time += time.Since(start)
	return v, err
}

type timed struct {
	gorgonia.Op
	row *ProfileRow
}

func (t timed) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	return t.row.measure(func() (gorgonia.Value, error) { return t.Op.Do(in...) })
}

type timedPrealloc struct {
	do  gorgonia.UsePreallocDoer
	row *ProfileRow
}

func (t timedPrealloc) UsePreallocDo(p gorgonia.Value, in ...gorgonia.Value) (gorgonia.Value, error) {
	return t.row.measure(func() (gorgonia.Value, error) { return t.do.UsePreallocDo(p, in...) })
}
