package schedule_test

import (
	"fmt"
	"os"

	"optimop/graphops"
	"optimop/solvers/schedule"
)

// The learning rate of RETURNN's dynamic_learning_rate = {"interval": 3, "decay": 0.5}, by run.
func ExampleIntervalDecay() {
	s := schedule.NewIntervalDecay(1, 3, 0.5)
	for step := range 7 {
		fmt.Print(schedule.Value(s, step), " ")
	}
	// Output: 1 0.5 0.25 1 0.5 0.25 1
}

func ExampleExponentialDecay() {
	smooth := schedule.NewExponentialDecay(0.1, 10, 0.5)
	stairs := schedule.NewExponentialDecay(0.1, 10, 0.5, func(d *schedule.ExponentialDecay) { d.Staircase = true })
	for _, step := range []int{0, 5, 10, 15, 20} {
		fmt.Printf("%.4f %.4f\n", schedule.Value(smooth, step), schedule.Value(stairs, step))
	}
	// Output:
	// 0.1000 0.1000
	// 0.0707 0.1000
	// 0.0500 0.0500
	// 0.0354 0.0500
	// 0.0250 0.0250
}

func ExampleNoam() {
	at, err := schedule.Compile(schedule.NewNoam(512, 4000)) // for many values
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range []int{0, 1999, 3999, 15999} {
		fmt.Printf("%.3g ", at(step))
	}
	// Output: 1.75e-07 0.000349 0.000699 0.000349
}

func ExampleFromConfig() {
	s, err := schedule.FromConfig(map[string]any{"class": "exponential_decay", "initial": 0.1, "decay_steps": 1000, "decay_rate": 0.96})
	fmt.Println(s, err)
	_, err = schedule.FromConfig(map[string]any{"class": "noam", "d_model": 512, "warmup_step": 4000})
	fmt.Println(err)
	// Output:
	// {0.1 1000 0.96 false 0 0} <nil>
	// schedule: noam: option "warmup_step" is unknown (did you mean "warmup_steps"?)
}

func ExampleMarshal() {
	text, err := schedule.Marshal(schedule.NewNoam(512, 4000))
	fmt.Println(string(text), err)
	s, err := schedule.Unmarshal(text)
	fmt.Println(s, err)
	// Output:
	// {"class":"noam","d_model":512,"factor":1,"warmup_steps":4000,"zero_based":false} <nil>
	// {512 4000 1 false} <nil>
}

// A triangle: up for 4 runs, down for 4 runs, again and again.
func ExampleFunc() {
	s := schedule.Func(func(step schedule.Expr) schedule.Expr {
		period, half := graphops.Const(8), graphops.Const(4)
		at := step.Sub(step.Div(period).Floor().Mul(period))
		return half.Sub(at.Sub(half).Abs()).Div(half)
	})
	for step := range 9 {
		fmt.Print(schedule.Value(s, step), " ")
	}
	// Output: 0 0.25 0.5 0.75 1 0.75 0.5 0.25 0
}

func ExampleWarmup() {
	s := schedule.NewWarmup(schedule.NewPolynomialDecay(1, 4, func(d *schedule.PolynomialDecay) { d.End = 0 }), 2)
	for step := range 8 {
		fmt.Print(schedule.Value(s, step), " ")
	}
	// Output: 0 0.5 1 0.75 0.5 0.25 0 0
}

// One after the other, from JSON.
func ExampleSequential() {
	s, err := schedule.Unmarshal([]byte(`{"class": "sequential", "boundaries": [3], "schedules": [
		{"class": "constant", "value": 1},
		{"class": "step_decay", "initial": 0.5, "step_size": 2, "gamma": 0.5}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for step := range 9 {
		fmt.Print(schedule.Value(s, step), " ")
	}
	// Output: 1 1 1 0.5 0.5 0.25 0.25 0.125 0.125
}

func ExampleDraw() {
	s := schedule.NewCosineDecayRestarts(0.1, 20, func(d *schedule.CosineDecayRestarts) { d.MMul = 0.7 })
	if err := schedule.Draw(os.Stdout, s, 60, func(d *schedule.Drawing) { d.Height = 6 }); err != nil {
		fmt.Println(err)
	}
	// Output:
	//        0.1 |*****
	//            |     ***
	//            |        **          ***************
	//            |          ***                      *******
	//            |             ***                          *********
	//  0.0001079 |                ****                               *********
	//            +------------------------------------------------------------
	//             0                                                         59
}

func ExampleReduceOnPlateau() {
	c, err := schedule.NewReduceOnPlateau(0.1, func(r *schedule.ReduceOnPlateau) { r.Factor, r.Patience = 0.5, 1 })
	for _, loss := range []float64{3, 2, 2, 2, 1, 1, 1} {
		var rate float64
		if rate, err = c.Observe(loss); err != nil { // at the end of an epoch
			break
		}
		fmt.Print(rate, " ") // for the next: solver.Set("learning_rate", rate)
	}
	fmt.Println(err)
	// Output: 0.1 0.1 0.1 0.05 0.05 0.05 0.025 <nil>
}

// RETURNN's learning_rate_control = "newbob", with a rest after 3 epochs.
func ExampleNewbob() {
	halve := func(n *schedule.Newbob) { n.Threshold = -0.1 }
	c, err := schedule.NewNewbob(1, halve)
	for _, loss := range []float64{3, 2, 1.9} {
		if err == nil {
			_, err = c.Observe(loss)
		}
	}
	state, _ := c.State()
	fmt.Println(string(state), err)

	c, _ = schedule.NewNewbob(1, halve)
	fmt.Println(c.Restore(state), c.Rate())
	// Output:
	// {"rates":[1,1,1,0.5],"scores":[3,2,1.9]} <nil>
	// <nil> 0.5
}
