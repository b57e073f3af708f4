package updater

import "github.com/pkg/errors"

// Between calls f between two runs of the machines of this updater and of those of On, which wait for it. Any goroutine may call it while another
// trains: to read slots and variables, to set hyperparameters, to take a Snapshot, which is then written while the training goes on. The goroutine that
// trains needs it for what it does itself between runs only if others change something. f must not run such a machine, nor call Between.
//
//	err := u.Between(func() (err error) { s, err = u.Snapshot(); return err })
//	err = s.WriteFile(path)
func (u *Updater) Between(f func() error) error {
	if u.solver == nil {
		return errors.New("updater: make it with New")
	}
	return u.solver.Store().Between(f)
}
