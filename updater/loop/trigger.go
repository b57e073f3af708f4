package loop

// Trigger says at which events a callback acts.
type Trigger interface{ Fires(e Event) bool }

// TriggerFunc is a function as a Trigger.
type TriggerFunc func(e Event) bool

func (f TriggerFunc) Fires(e Event) bool { return f(e) }

func (k Kind) Fires(e Event) bool { return e.Kind == k }

// EveryEpochs fires after each epoch whose number, from 1, is a multiple of it; 0 or less never.
type EveryEpochs int

func (n EveryEpochs) Fires(e Event) bool {
	return n > 0 && e.Kind == AfterEpoch && e.Loop.Log.Status.EpochsDone%int(n) == 0
}

// EveryBatches fires after each batch whose number, from 1, is a multiple of it; 0 or less never.
type EveryBatches int

func (n EveryBatches) Fires(e Event) bool {
	return n > 0 && e.Kind == AfterBatch && e.Loop.Log.Status.IterationsDone%int(n) == 0
}

// AfterEpochs fires once: after the epoch of this number, from 1, counted over all runs.
type AfterEpochs int

func (n AfterEpochs) Fires(e Event) bool {
	return e.Kind == AfterEpoch && e.Loop.Log.Status.EpochsDone == int(n)
}

// AfterBatches fires once: after the batch of this number, from 1, counted over all runs.
type AfterBatches int

func (n AfterBatches) Fires(e Event) bool {
	return e.Kind == AfterBatch && e.Loop.Log.Status.IterationsDone == int(n)
}

// BeforeFirstEpoch fires before the first epoch of all runs.
type BeforeFirstEpoch struct{}

func (BeforeFirstEpoch) Fires(e Event) bool {
	return e.Kind == BeforeEpoch && e.Loop.Log.Status.EpochsDone == 0
}

// OnRecord fires at all events while the current row of the log has this record and it is not false: combine it with a Kind by All.
type OnRecord string

func (name OnRecord) Fires(e Event) bool {
	v, ok := e.Loop.Log.Get(string(name))
	return ok && v != false
}

// Any fires where one of the triggers does.
func Any(triggers ...Trigger) Trigger {
	return TriggerFunc(func(e Event) bool {
		for _, t := range triggers {
			if t.Fires(e) {
				return true
			}
		}
		return false
	})
}

// All fires where all triggers do.
func All(triggers ...Trigger) Trigger {
	return TriggerFunc(func(e Event) bool {
		for _, t := range triggers {
			if !t.Fires(e) {
				return false
			}
		}
		return len(triggers) > 0
	})
}
