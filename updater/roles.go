package updater

import (
	"slices"
	"strings"

	"gorgonia.org/gorgonia"

	"optimop/graphops"
)

// Role says what a node or a state is for. Roles are a hierarchy, by their text: what has the role PERSISTENT/PARAMETER/WEIGHT
// is also PERSISTENT/PARAMETER and PERSISTENT. A role of your own is RoleWeight + "/EMBEDDING".
type Role string

// The roles of Blocks.
const (
	RoleInput     Role = "INPUT"
	RoleOutput    Role = "OUTPUT"
	RoleCost      Role = "COST"
	RoleAuxiliary Role = "AUXILIARY"
	RoleDropout   Role = "DROPOUT"

	RolePersistent   Role = "PERSISTENT"
	RoleParameter    Role = RolePersistent + "/PARAMETER"
	RoleWeight       Role = RoleParameter + "/WEIGHT"
	RoleFilter       Role = RoleWeight + "/FILTER"
	RoleBias         Role = RoleParameter + "/BIAS"
	RoleInitialState Role = RoleParameter + "/INITIAL_STATE"

	RoleBatchNormScale Role = RoleParameter + "/BATCH_NORM_SCALE_PARAMETER"
	RoleBatchNormShift Role = RoleBias + "/BATCH_NORM_SHIFT_PARAMETER"
	RoleStatistics     Role = RolePersistent + "/BATCH_NORM_POPULATION_STATISTICS"
	RoleMean           Role = RoleStatistics + "/BATCH_NORM_POPULATION_MEAN"
	RoleDeviation      Role = RoleStatistics + "/BATCH_NORM_POPULATION_STDEV"

	RoleAlgorithmState Role = "ALGORITHM_STATE"
	RoleHyperparameter Role = RoleAlgorithmState + "/ALGORITHM_HYPERPARAMETER"
	RoleBuffer         Role = RoleAlgorithmState + "/ALGORITHM_BUFFER"
)

// String is the role's own name, without those of its ancestors.
func (r Role) String() string { return string(r[strings.LastIndexByte(string(r), '/')+1:]) }

// Is reports whether a role is another or a descendant of it.
func (r Role) Is(of Role) bool { return r == of || strings.HasPrefix(string(r), string(of)+"/") }

// Roles are the roles of nodes. The zero value is empty.
type Roles struct{ of map[*gorgonia.Node][]Role }

// Add gives a node a role in the place of those ancestors of it that the node has. Where it has the role or a descendant of it
// already, nothing changes.
func (r *Roles) Add(n *gorgonia.Node, role Role) {
	have := slices.DeleteFunc(slices.Clone(r.of[n]), func(old Role) bool { return role.Is(old) })
	if !hasRole(have, role) {
		have = append(have, role)
	}
	if r.of == nil {
		r.of = map[*gorgonia.Node][]Role{}
	}
	r.of[n] = have
}

// Of are the roles of a node, in the order in which it got them.
func (r *Roles) Of(n *gorgonia.Node) []Role { return slices.Clone(r.of[n]) }

// Has reports whether a node has one of some roles, or a descendant of one. Of no roles it has none.
func (r *Roles) Has(n *gorgonia.Node, roles ...Role) bool {
	return slices.ContainsFunc(roles, func(q Role) bool { return hasRole(r.of[n], q) })
}

// HasAll reports whether a node has each of some roles, or a descendant of each. Of no roles it has all.
func (r *Roles) HasAll(n *gorgonia.Node, roles ...Role) bool {
	return !slices.ContainsFunc(roles, func(q Role) bool { return !hasRole(r.of[n], q) })
}

// Filter are those of some nodes that have one of some roles, in their order.
func (r *Roles) Filter(ns gorgonia.Nodes, roles ...Role) (out gorgonia.Nodes) {
	for _, n := range ns {
		if r.Has(n, roles...) {
			out = append(out, n)
		}
	}
	return out
}

func hasRole(have []Role, q Role) bool {
	return slices.ContainsFunc(have, func(r Role) bool { return r.Is(q) })
}

// RoleOf is the role of a state: that of a hyperparameter, or of a buffer, which slots and counters are. What parameter a buffer
// is for, if it is for one, says State.Param.
func RoleOf(st *graphops.State) Role {
	if st.Kind() == graphops.Hyper {
		return RoleHyperparameter
	}
	return RoleBuffer
}

// FilterStates are those of some states that have one of some roles, in their order: of solver.Store().States(), mostly.
func FilterStates(states []*graphops.State, roles ...Role) (out []*graphops.State) {
	for _, st := range states {
		if slices.ContainsFunc(roles, RoleOf(st).Is) {
			out = append(out, st)
		}
	}
	return out
}
