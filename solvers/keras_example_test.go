package solvers_test

import (
	"encoding/json"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/solvers/schedule"
)

// An update_step of one's own is the Apply of a rule: what each parameter loses, from its gradient and its slots.
type Signum struct {
	LearningRate float64 `range:"[0,inf)"`
	Momentum     float64 `range:"[0,1)"`
}

func (*Signum) Apply(b *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) {
	rate, momentum := b.Hyper("learning_rate"), b.Hyper("momentum")
	return b.Each(in, func(s solvers.Step) solvers.Expr {
		m := b.Slot(s, "m")
		now := m.Set(m.Mul(momentum).Add(s.Delta.Mul(graphops.Const(1).Sub(momentum))))
		return rate.Mul(now.Sign())
	})
}

func ExampleRule() {
	_, loss, w := quadratic()
	solver := solvers.New(&Signum{LearningRate: 0.5, Momentum: 0.5})
	train, err := solver.Minimize(loss, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(train)
	if err == nil {
		err = vm.RunAll()
	}
	fmt.Println(w.Value(), solver.Slot(w, "m").Value(), err)
	// Output: [0.5  1.5  2.5] [1  2  3] <nil>
}

// New parameters and a new state of old ones: nothing is changed.
func ExampleSolver_StatelessApply() {
	_, _, w := quadratic()
	solver := solvers.NewMomentum(func(m *solvers.Momentum) { m.LearningRate, m.Momentum = 0.5, 0.5 })
	if err := solver.Build([]gorgonia.ValueGrad{w}); err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range solver.Variables() {
		fmt.Println(v.Name(), v.Kind() == graphops.Slot)
	}
	state, err := solver.Weights()
	params := []gorgonia.Value{w.Value()}
	for range 2 {
		if err != nil {
			fmt.Println(err)
			return
		}
		grads := []gorgonia.Value{tensor.New(tensor.WithBacking([]float64{1, 1, 1}))}
		params, state, err = solver.StatelessApply(state, grads, params)
	}
	fmt.Println(params[0], state[len(state)-1], err)
	fmt.Println(w.Value(), solver.Slot(w, "momentum").Value())
	// Output:
	// global_step false
	// momentum/learning_rate false
	// w/momentum/momentum true
	// [-0.25   0.75   1.75] [1.5  1.5  1.5] <nil>
	// [1  2  3] [0  0  0]
}

// A solver as JSON, and back.
func ExampleMarshal() {
	solver := solvers.Chain(solvers.NewClipByNorm(1), solvers.NewLion())
	if err := solver.Schedule("learning_rate", schedule.NewNoam(512, 4000)); err != nil {
		fmt.Println(err)
		return
	}
	text, err := solvers.Marshal(solver)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	again, err := solvers.Unmarshal(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.Get("beta2"))
	// Output:
	// {"class":"chain","rules":[{"class":"clip_by_norm","max_norm":1},{"beta1":0.9,"beta2":0.99,"class":"lion","learning_rate":0.001,"weight_decay":0}],"schedules":{"lion/learning_rate":{"class":"noam","d_model":512,"factor":1,"warmup_steps":4000,"zero_based":false}}}
	// 0.99 <nil>
}

// An optimizer that Keras serialized.
func ExampleFromKerasConfig() {
	text := `{"module": "keras.optimizers", "class_name": "AdamW", "registered_name": null, "config": {"name": "adam_w", "clipnorm": 1.0,
		"weight_decay": 0.01, "learning_rate": {"module": "keras.optimizers.schedules", "class_name": "ExponentialDecay", "registered_name": null,
		"config": {"initial_learning_rate": 0.1, "decay_steps": 100, "decay_rate": 0.5, "staircase": false, "name": "ExponentialDecay"}}}}`
	var config map[string]any
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		fmt.Println(err)
		return
	}
	solver, err := solvers.FromKerasConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(solver.Get("learning_rate"))
	fmt.Println(solver.Get("adamw/weight_decay"))
	back, err := solver.KerasConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(back["class_name"], back["config"].(map[string]any)["clipnorm"])
	// Output:
	// 0.1 <nil>
	// 0.01 <nil>
	// AdamW 1.0
}
