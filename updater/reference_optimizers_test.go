package updater

import (
	"maps"
	"math"
	"strings"
)

// refOptimizer is an optimizer's options, with its defaults and what the config injects, and under "kind" which one it is.
type refOptimizer map[string]any

func (o refOptimizer) number(key string) float64 { return number(o[key], math.NaN()) }

// refClasses are the optimizers by name, with their defaults.
var refClasses = map[string]refOptimizer{
	"sgd":         {"kind": "sgd", "learning_rate": .01},
	"returnn/sgd": {"kind": "velocity", "learning_rate": .01, "momentum": 0, "nesterov": false},
	"momentum":    {"kind": "momentum", "learning_rate": .01, "momentum": .9, "nesterov": false},
	"adam":        {"kind": "adam", "learning_rate": .001, "beta1": .9, "beta2": .999, "epsilon": 1e-8, "epsilon_hat": false},
	"tf1/adam":    {"kind": "adam", "learning_rate": .001, "beta1": .9, "beta2": .999, "epsilon": 1e-8, "epsilon_hat": true},
	"adamw": {"kind": "adam", "learning_rate": .001, "beta1": .9, "beta2": .999, "epsilon": 1e-8, "epsilon_hat": false,
		"weight_decay": .01},
	"returnn/nadam":   {"kind": "nadam", "learning_rate": .001, "beta1": .9, "beta2": .999, "epsilon": 1e-8},
	"amsgrad":         {"kind": "amsgrad", "learning_rate": .001, "beta1": .9, "beta2": .99, "epsilon": 1e-8, "decay": false},
	"returnn/amsgrad": {"kind": "amsgrad", "learning_rate": .001, "beta1": .9, "beta2": .99, "epsilon": 0, "decay": false},
	"adagrad":         {"kind": "adagrad", "learning_rate": .01, "initial_accumulator_value": 0, "epsilon": 1e-10},
	"tf1/adagrad":     {"kind": "adagrad", "learning_rate": .001, "initial_accumulator_value": .1, "epsilon": 0},
	"rmsprop":         {"kind": "rmsprop", "learning_rate": .001, "rho": .9, "momentum": 0, "epsilon": 1e-8, "centered": false},
	"tf1/rmsprop": {"kind": "rmsprop", "learning_rate": .001, "rho": .9, "momentum": 0, "epsilon": 1e-10, "centered": false,
		"initial_value": 1, "inside": true},
	"tf1/adadelta": {"kind": "adadelta", "learning_rate": .001, "rho": .95, "epsilon": 1e-8},
}

// refClass finds an optimizer's name in the preset's family first; RETURNN's has those of TensorFlow 1.
func refClass(preset any, class string) refOptimizer {
	class = strings.TrimSuffix(strings.ToLower(class), "optimizer")
	family, _ := preset.(string)
	for _, f := range []string{family + "/", map[string]string{"returnn": "tf1/"}[family], ""} {
		if o := refClasses[f+class]; o != nil {
			return o
		}
	}
	return nil
}

// optimizer is that of a variable.
func (r *reference) optimizer(i int) refOptimizer { return r.trial.optimizer(r.of(i, "optimizer")) }

// complete is a choice of an optimizer with its class and options; an empty one is that of the config, whose class is that
// of one without.
func (tr *trial) complete(choice any) map[string]any {
	switch c := choice.(type) {
	case string:
		if c != "" {
			return map[string]any{"class": c}
		}
	case map[string]any:
		if c["class"] != nil {
			return c
		}
		if len(c) > 0 {
			c = maps.Clone(c)
			c["class"] = tr.complete(nil)["class"]
			return c
		}
	}
	if tr.cfg["optimizer"] == nil {
		return map[string]any{"class": "sgd"}
	}
	return tr.complete(tr.cfg["optimizer"])
}

// optimizer is what a choice means.
func (tr *trial) optimizer(choice any) refOptimizer {
	given := tr.complete(choice)
	o := maps.Clone(refClass(tr.cfg["preset"], given["class"].(string)))
	for key, v := range map[string]any{"epsilon": tr.cfg["optimizer_epsilon"], "momentum": tr.cfg["momentum"]} {
		if _, has := o[key]; has && v != nil {
			o[key] = v
		}
	}
	maps.Copy(o, given)
	return o
}

// slots are the names of an optimizer's slots, with their values at the start.
func (o refOptimizer) slots() map[string]float64 {
	switch o["kind"] {
	case "momentum", "velocity":
		return map[string]float64{"momentum": 0}
	case "adam", "nadam":
		return map[string]float64{"m": 0, "v": 0}
	case "amsgrad":
		return map[string]float64{"m": 0, "v": 0, "vhat": 0}
	case "adagrad":
		return map[string]float64{"accumulator": o.number("initial_accumulator_value")}
	case "adadelta":
		return map[string]float64{"accum": 0, "accum_update": 0}
	case "rmsprop":
		all := map[string]float64{"rms": number(o["initial_value"], 0)}
		if o["centered"] == true {
			all["mg"] = 0
		}
		if o.number("momentum") != 0 { // NaN: a schedule
			all["momentum"] = 0
		}
		return all
	}
	return nil
}

// update is one step of an optimizer.
func (r *reference) update(i int, g []float64) {
	v, o := r.vars[i], r.optimizer(i)
	v.t++
	x, t := func(key string) float64 { return at(o[key], r.step) }, float64(v.t)
	lr := r.rateOf(o) * r.dynamic() * number(o["learning_rate_multiplier"], 1) * number(r.of(i, "learning_rate_multiplier"), 1)
	decay := number(o["weight_decay"], 0) * number(r.of(i, "weight_decay_multiplier"), 1)
	mu, rho, b1, b2, eps := x("momentum"), x("rho"), x("beta1"), x("beta2"), x("epsilon")
	none := make([]float64, len(g))
	slot := func(name string) []float64 {
		if s := v.slots[name]; s != nil {
			return s
		}
		return none
	}
	m, s, h, mom, mg := slot("m"), slot("v"), slot("vhat"), slot("momentum"), slot("mg")
	acc, rms, accum, moved := slot("accumulator"), slot("rms"), slot("accum"), slot("accum_update")
	for k, g := range g {
		if o["kind"] == "adam" || o["kind"] == "nadam" || o["kind"] == "amsgrad" {
			m[k] = b1*m[k] + (1-b1)*g
			s[k] = b2*s[k] + (1-b2)*g*g
		}
		step := math.NaN()
		switch o["kind"] {
		case "sgd":
			step = lr * g
		case "momentum":
			mom[k] = mu*mom[k] + g
			if step = lr * mom[k]; o["nesterov"] == true {
				step = lr*g + lr*mu*mom[k]
			}
		case "velocity":
			mom[k] = mu*mom[k] + lr*g
			if step = mom[k]; o["nesterov"] == true {
				step = lr*g + mu*mom[k]
			}
		case "adam":
			c1, c2 := 1-math.Pow(b1, t), 1-math.Pow(b2, t)
			if step = lr * m[k] / c1 / (math.Sqrt(s[k]/c2) + eps); o["epsilon_hat"] == true {
				step = lr * math.Sqrt(c2) / c1 * m[k] / (math.Sqrt(s[k]) + eps)
			}
			v.w[k] *= 1 - lr*decay
		case "nadam":
			c1, c2 := 1-math.Pow(b1, t), 1-math.Pow(b2, t)
			step = lr * math.Sqrt(c2) / c1 * (b1*m[k] + (1-b1)*g) / (math.Sqrt(s[k]) + eps)
		case "amsgrad":
			l := lr
			if o["decay"] == true {
				l /= math.Sqrt(t)
			}
			h[k] = max(h[k], s[k])
			step = l * m[k] / (eps + math.Sqrt(h[k]))
		case "adagrad":
			acc[k] += g * g
			step = lr * g / (math.Sqrt(acc[k]) + eps)
		case "adadelta":
			accum[k] = rho*accum[k] + (1-rho)*g*g
			u := g * math.Sqrt(moved[k]+eps) / math.Sqrt(accum[k]+eps)
			moved[k] = rho*moved[k] + (1-rho)*u*u
			step = lr * u
		case "rmsprop":
			rms[k] = rho*rms[k] + (1-rho)*g*g
			d := rms[k]
			if o["centered"] == true {
				mg[k] = rho*mg[k] + (1-rho)*g
				d -= mg[k] * mg[k]
			}
			if o["inside"] == true {
				d = math.Sqrt(d + eps)
			} else {
				d = math.Sqrt(d) + eps
			}
			mom[k] = mu*mom[k] + lr*g/d
			step = mom[k]
		}
		v.w[k] -= step
	}
}
