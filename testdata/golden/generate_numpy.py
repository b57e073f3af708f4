"""Writes numpy.json and numpy_barzilai_borwein.json: rows computed in plain NumPy.

They come straight from the formulas, for rules that only one library has, or none.
A row that has the name of a row in another file is the same setup.

The rate of Barzilai and Borwein follows the gradients, and falls to 0 where these
do not depend on the parameters. So that rule also has a problem of its own.

A rule is a function of its options, the step (counting from 1), the state of the
parameter, the parameter and the gradient, or what the rule before it made of the
gradient. It returns what is to be subtracted from the parameter. Its docstring is
the formula, and the reference of its rows; "x'" is the new value of x, and state
starts at 0.
"""

import numpy as np

import golden
import problem
from tf_rows import rule


def sgd(o, t, state, w, g):
    """lr*g"""
    return o["learning_rate"] * g


# The same in another library.
scale = sgd


def momentum(o, t, state, w, g):
    """v' = mu*v + g; lr*v'"""
    if o["dampening"] or o["rate_inside"]:
        raise ValueError("not implemented")
    v = state["v"] = o["momentum"] * state.get("v", 0.0) + g
    return o["learning_rate"] * v


def adam(o, t, state, w, g):
    """m' = b1*m + (1-b1)*g; v' = b2*v + (1-b2)*g**2;
    lr*m'/(1-b1**t) / (sqrt(v'/(1-b2**t)) + eps)"""
    if o["epsilon_hat"] or o["amsgrad"] or o["max_corrected"]:
        raise ValueError("not implemented")
    b1, b2 = o["beta1"], o["beta2"]
    m = state["m"] = b1 * state.get("m", 0.0) + (1 - b1) * g
    v = state["v"] = b2 * state.get("v", 0.0) + (1 - b2) * g**2
    root = np.sqrt(v / (1 - b2**t))
    return o["learning_rate"] * (m / (1 - b1**t)) / (root + o["epsilon"])


def amsgrad(o, t, state, w, g):
    """m' = b1*m + (1-b1)*g; v' = b2*v + (1-b2)*g**2; h' = max(h, v');
    lr*m'/(eps + sqrt(h')), with decay lr/sqrt(t) for lr"""
    b1, b2 = o["beta1"], o["beta2"]
    lr = o["learning_rate"] / t**0.5 if o["decay"] else o["learning_rate"]
    m = state["m"] = b1 * state.get("m", 0.0) + (1 - b1) * g
    v = state["v"] = b2 * state.get("v", 0.0) + (1 - b2) * g**2
    h = state["h"] = np.maximum(state.get("h", 0.0), v)
    return lr * m / (o["epsilon"] + np.sqrt(h))


def _shrink(x, amount):
    return np.sign(x) * np.maximum(np.abs(x) - amount, 0.0)


def proximal_gradient_descent(o, t, state, w, g):
    """p = w - lr*g; w' = sign(p)*max(abs(p) - lr*l1, 0)/(1 + lr*l2); w - w'"""
    lr = o["learning_rate"]
    return w - _shrink(w - lr * g, lr * o["l1"]) / (1 + lr * o["l2"])


def adagrad_da(o, t, state, w, g):
    """G' = G + g; Q' = Q + g**2, from initial_accumulator_value;
    w' = -lr*sign(G')*max(abs(G') - l1*t, 0)/(l2*t*lr + sqrt(Q')); w - w'"""
    lr = o["learning_rate"]
    total = state["G"] = state.get("G", 0.0) + g
    squares = state["Q"] = state.get("Q", o["initial_accumulator_value"]) + g**2
    below = o["l2"] * t * lr + np.sqrt(squares)
    return w + lr * _shrink(total, o["l1"] * t) / below


def normalized_sgd(o, t, state, w, g):
    """lr*g/sqrt(max(sum(g**2), 1e-12))"""
    return o["learning_rate"] * g / np.sqrt(np.maximum(np.sum(g**2), 1e-12))


def neural_optimizer1(o, t, state, w, g):
    """m' = b1*m + (1-b1)*g; lr*g, times decrease_factor where sign(g) != sign(m')"""
    m = state["m"] = o["beta1"] * state.get("m", 0.0) + (1 - o["beta1"]) * g
    step = o["learning_rate"] * g
    return np.where(np.sign(g) == np.sign(m), step, step * o["decrease_factor"])


def grad_variance_scaled(o, t, state, w, g):
    """m' = b1*m + (1-b1)*g; d = (g-m')**2; v' = b2*v + (1-b2)*d;
    lr*g*min(v'/(d+eps), 1)"""
    b1, b2 = o["beta1"], o["beta2"]
    m = state["m"] = b1 * state.get("m", 0.0) + (1 - b1) * g
    d = (g - m) ** 2
    v = state["v"] = b2 * state.get("v", 0.0) + (1 - b2) * d
    return o["learning_rate"] * g * np.minimum(v / (d + o["epsilon"]), 1.0)


def conditional_gradient(o, t, state, w, g):
    """w' = lr*w - (1-lr)*lambda*g/(sqrt(sum(g**2)) + eps); w - w'"""
    if o["ord"] != "fro":
        raise ValueError("not implemented")
    lr = o["learning_rate"]
    direction = g / (np.sqrt(np.sum(g**2)) + o["epsilon"])
    return w - (lr * w - (1 - lr) * o["lambda"] * direction)


def basic_momentum(o, t, state, w, g):
    """v' = mu*v + g; v', or with nesterov mu**2*v + (1+mu)*g"""
    mu, v = o["momentum"], state.get("v", 0.0)
    state["v"] = mu * v + g
    if o.get("nesterov"):
        return mu**2 * v + (1 + mu) * g
    return state["v"]


def basic_rmsprop(o, t, state, w, g):
    """G' = rho*G + (1-rho)*g**2; g/max(sqrt(G'), 1/max_scaling)"""
    rho = o["rho"]
    squares = state["G"] = rho * state.get("G", 0.0) + (1 - rho) * g**2
    return g / np.maximum(np.sqrt(squares), 1 / o["max_scaling"])


def blocks_adam(o, t, state, w, g):
    """b = b1*decay**(t-1); m' = b*m + (1-b)*g; v' = b2*v + (1-b2)*g**2;
    lr*sqrt(1-b2**t)/(1-b**t)*m'/(sqrt(v')+eps), with old_betas 1-b1 for b1, 1-b2
    for b2, b = 1 - b1*decay**(t-1), with the b1 given, and (1-b1)**t for b**t"""
    b1, b2, decay = o["beta1"], o["beta2"], o["decay_factor"]
    if o["old_betas"]:
        new = 1 - (1 - b1) * decay ** (t - 1)
        m = new * g + (1 - new) * state.get("m", 0.0)
        v = b2 * g**2 + (1 - b2) * state.get("v", 0.0)
        rate = (1 - (1 - b2) ** t) ** 0.5 / (1 - (1 - b1) ** t)
    else:
        b = b1 * decay ** (t - 1)
        m = b * state.get("m", 0.0) + (1 - b) * g
        v = b2 * state.get("v", 0.0) + (1 - b2) * g**2
        rate = (1 - b2**t) ** 0.5 / (1 - b**t)
    state["m"], state["v"] = m, v
    return o["learning_rate"] * rate * m / (np.sqrt(v) + o["epsilon"])


def variable_clipping(o, t, state, w, g):
    """d = w - g; n = sqrt(sum(d**2)); w - threshold/n*d if n > threshold else g"""
    if o["axes"]:
        raise ValueError("not implemented")
    d = w - g
    n = np.sqrt(np.sum(d**2))
    return w - o["threshold"] / n * d if n > o["threshold"] else g


def remove_not_finite(o, t, state, w, g):
    """g if all of g is finite else (1-scaler)*w"""
    return g if np.isfinite(g).all() else (1 - o["scaler"]) * w


def regularize(o, t, state, w, g):
    """min(max((g + l1*sign(w) + l2*w)/batch_size, -clip), clip)"""
    g = (g + o["l1"] * np.sign(w) + o["l2"] * w) / o["batch_size"]
    return np.clip(g, -o["clip"], o["clip"]) if o["clip"] else g


def coupled_decay(o, t, state, w, g):
    """g + weight_decay*w"""
    return g + o["weight_decay"] * w


def _dot(left, right):
    """The sum over all elements of all parameters."""
    return sum(np.sum(x * y) for x, y in zip(left, right, strict=True))


# The rules that see all parameters together.


def step_clipping(o, t, state, ws, gs):
    """n = norm of all steps together; g if n < threshold else g*threshold/n"""
    n = np.sqrt(_dot(gs, gs))
    factor = 1.0 if n < o["threshold"] else o["threshold"] / n
    return [g * factor for g in gs]


def barzilai_borwein(o, t, state, ws, gs):
    """r*g; r is lr at first, then <w - w_before, dg>/<dg, dg> with dg = g - g_before,
    both sums over all parameters, and limited to -clip and clip if there is a clip"""
    if t == 1:
        rate = o["learning_rate"]
    else:
        dw = [w - before for w, before in zip(ws, state["w"], strict=True)]
        dg = [g - before for g, before in zip(gs, state["g"], strict=True)]
        rate = _dot(dw, dg) / _dot(dg, dg)
        if o["clip"]:
            rate = np.clip(rate, -o["clip"], o["clip"])
    state["w"], state["g"] = ws, gs
    return [rate * g for g in gs]


TOGETHER = (step_clipping, barzilai_borwein)


def _other(name, **options):
    """A rule that is not in tf_rows, or has more options than there."""
    return {"name": name, "options": options}


_SGD = rule("sgd", learning_rate=0.1)
_SCALE = rule("scale", learning_rate=0.1)


# Row name and rules.
ROWS = [
    ("tf1/adagrad-da", [rule("adagrad_da", learning_rate=0.1)]),
    ("tf1/adagrad-da-l1-l2", [rule("adagrad_da", learning_rate=0.1, l1=0.02, l2=0.3)]),
    (
        "numpy/adagrad-da-initial-0.5",
        [
            rule(
                "adagrad_da",
                learning_rate=0.3,
                initial_accumulator_value=0.5,
                l1=0.01,
                l2=0.1,
            )
        ],
    ),
    (
        "tf1/proximal-gradient-descent",
        [rule("proximal_gradient_descent", learning_rate=0.1, l1=0.05, l2=0.2)],
    ),
    (
        "tf1/proximal-gradient-descent-l2",
        [rule("proximal_gradient_descent", learning_rate=0.1, l2=0.2)],
    ),
    (
        "numpy/proximal-gradient-descent-l1",
        [rule("proximal_gradient_descent", learning_rate=0.1, l1=0.3)],
    ),
    ("returnn/normalized-sgd", [rule("normalized_sgd", learning_rate=0.1)]),
    ("returnn/neural-optimizer1", [rule("neural_optimizer1", learning_rate=0.1)]),
    (
        "returnn/neural-optimizer1-factor-0.5",
        [rule("neural_optimizer1", learning_rate=0.1, beta1=0.6, decrease_factor=0.5)],
    ),
    ("returnn/grad-variance-scaled", [rule("grad_variance_scaled", learning_rate=0.1)]),
    (
        "returnn/grad-variance-scaled-eps-0.1",
        [
            rule(
                "grad_variance_scaled",
                learning_rate=0.3,
                beta1=0.8,
                beta2=0.7,
                epsilon=0.1,
            )
        ],
    ),
    ("returnn/amsgrad", [rule("amsgrad", learning_rate=0.01, epsilon=1e-16)]),
    (
        "returnn/amsgrad-decay",
        [rule("amsgrad", learning_rate=0.1, decay=True, epsilon=1e-16)],
    ),
    (
        "returnn/amsgrad-eps-1e-2",
        [rule("amsgrad", learning_rate=0.05, beta1=0.5, beta2=0.8, epsilon=1e-2)],
    ),
    ("numpy/amsgrad-eps-1e-8", [rule("amsgrad", learning_rate=0.01, epsilon=1e-8)]),
    (
        "numpy/amsgrad-eps-1e-8-decay",
        [rule("amsgrad", learning_rate=0.05, decay=True, epsilon=1e-8)],
    ),
    (
        "addons/conditional-gradient",
        [rule("conditional_gradient", **{"learning_rate": 0.9, "lambda": 0.1})],
    ),
    (
        "addons/conditional-gradient-eps-0.1",
        [
            rule(
                "conditional_gradient",
                **{"learning_rate": 0.7, "lambda": 2.0, "epsilon": 0.1},
            )
        ],
    ),
    ("blocks/scale", [_SCALE]),
    ("blocks/basic-momentum", [rule("basic_momentum", momentum=0.5)]),
    (
        "numpy/basic-momentum-nesterov",
        [_other("basic_momentum", momentum=0.5, nesterov=True)],
    ),
    (
        "blocks/momentum-then-scale",
        [rule("basic_momentum", momentum=0.9), rule("scale", learning_rate=0.05)],
    ),
    (
        "numpy/scale-then-basic-momentum",
        [_SCALE, _other("basic_momentum", momentum=0.9, nesterov=False)],
    ),
    (
        "numpy/scale-then-basic-momentum-nesterov",
        [_SCALE, _other("basic_momentum", momentum=0.9, nesterov=True)],
    ),
    (
        "numpy/scale-then-momentum",
        [_SCALE, rule("momentum", learning_rate=0.5, momentum=0.9)],
    ),
    ("blocks/basic-rmsprop", [rule("basic_rmsprop", rho=0.9, max_scaling=1e5)]),
    (
        "blocks/basic-rmsprop-scaling-5",
        [rule("basic_rmsprop", rho=0.5, max_scaling=5.0)],
    ),
    (
        "numpy/basic-rmsprop-then-scale",
        [rule("basic_rmsprop", rho=0.8, max_scaling=50.0), _SCALE],
    ),
    ("blocks/adam", [rule("blocks_adam")]),
    (
        "blocks/adam-decay-0.9",
        [
            rule(
                "blocks_adam",
                learning_rate=0.02,
                beta1=0.8,
                beta2=0.99,
                epsilon=1e-3,
                decay_factor=0.9,
            )
        ],
    ),
    (
        "blocks/adam-old",
        [
            rule(
                "blocks_adam",
                beta1=0.1,
                beta2=0.001,
                decay_factor=1 - 1e-8,
                old_betas=True,
            )
        ],
    ),
    (
        "blocks/adam-old-decay-0.9",
        [
            rule(
                "blocks_adam",
                learning_rate=0.02,
                beta1=0.2,
                beta2=0.01,
                epsilon=1e-3,
                decay_factor=0.9,
                old_betas=True,
            )
        ],
    ),
    ("blocks/clip-then-scale", [rule("step_clipping", threshold=1.0), _SCALE]),
    ("blocks/scale-then-clip", [_SCALE, rule("step_clipping", threshold=0.05)]),
    ("blocks/variable-clipping", [_SCALE, rule("variable_clipping", threshold=1.5)]),
    (
        "numpy/sgd-then-variable-clipping",
        [_SGD, rule("variable_clipping", threshold=1.5)],
    ),
    (
        "blocks/scale-then-remove-not-finite",
        [_SCALE, _other("remove_not_finite", scaler=1.0)],
    ),
    (
        "blocks/scale-then-remove-not-finite-0.1",
        [_SCALE, _other("remove_not_finite", scaler=0.1)],
    ),
    (
        "numpy/sgd-then-remove-not-finite",
        [_SGD, _other("remove_not_finite", scaler=1.0)],
    ),
    (
        "numpy/barzilai-borwein",
        [_other("barzilai_borwein", learning_rate=0.01, clip=0.0)],
    ),
    (
        "numpy/barzilai-borwein-clip-0.05",
        [_other("barzilai_borwein", learning_rate=0.01, clip=0.05)],
    ),
    (
        "numpy/regularize-then-sgd",
        [_other("regularize", l1=0.01, l2=0.02, batch_size=4.0, clip=0.1), _SGD],
    ),
    (
        "regularize-l2/sgd",
        [_other("regularize", l1=0.0, l2=0.02, batch_size=4.0, clip=0.1), _SGD],
    ),
    (
        "numpy/regularize-no-clip-then-sgd",
        [_other("regularize", l1=0.1, l2=0.2, batch_size=1.0, clip=0.0), _SGD],
    ),
    (
        "coupled-decay-0.05/sgd",
        [_other("coupled_decay", weight_decay=0.05), _SGD],
    ),
    (
        "coupled-decay-0.05/momentum",
        [
            _other("coupled_decay", weight_decay=0.05),
            rule("momentum", learning_rate=0.05),
        ],
    ),
    (
        "coupled-decay-0.05/adam",
        [_other("coupled_decay", weight_decay=0.05), rule("adam", learning_rate=0.01)],
    ),
]

BORWEIN_ROWS = [
    (
        f"numpy/barzilai-borwein-quadratic{suffix}",
        [_other("barzilai_borwein", learning_rate=0.01, clip=clip)],
    )
    for suffix, clip in (("", 0.0), ("-clip-0.05", 0.05))
]


def run(rules, gradients=None, dtype=np.float64):
    """Returns the formulas, and the values.

    gradients is a function of the step and the parameters, if not those of the
    problem.
    """
    initial, given = problem.problem()
    functions = [globals()[r["name"]] for r in rules]
    texts = [" ".join(f.__doc__.split()) for f in functions]
    params = [np.asarray(x, dtype) for x in initial]
    # Per rule, the state of each parameter.
    states = [{} if f in TOGETHER else [{} for _ in params] for f in functions]
    values = []
    for t in range(1, problem.STEPS + 1):
        grads = gradients(t, params) if gradients else given[t - 1]
        steps = [np.asarray(g, dtype) for g in grads]
        for f, r, state in zip(functions, rules, states, strict=True):
            if f in TOGETHER:
                steps = f(r["options"], t, state, params, steps)
            else:
                steps = [
                    f(r["options"], t, s, w, g)
                    for s, w, g in zip(state, params, steps, strict=True)
                ]
        params = [w - s for w, s in zip(params, steps, strict=True)]
        values.append(params)
    return " | ".join(texts), values


def quadratic():
    """Gradients for BORWEIN_ROWS, like those of the problem.

    They are those that the first row meets on a quadratic, which has a minimum up
    to step 12, and turned over a maximum, so that the rate becomes negative.
    """
    rng = np.random.default_rng(problem.SEED)
    curvature = [rng.uniform(2.0, 40.0, shape) for _, shape in problem.PARAMS]
    seen = []

    def gradients(t, params):
        sign = 1.0 if t <= 12 else -1.0
        grads = [
            np.asarray(sign * c * w).astype(np.float32).astype(np.float64)
            for c, w in zip(curvature, params, strict=True)
        ]
        seen.append(grads)
        return grads

    run(BORWEIN_ROWS[0][1], gradients)
    return seen


def main():
    source = (
        f"independent NumPy {np.__version__} implementation of the published formulas"
        " (float64)"
    )
    results = []
    for name, rules in ROWS:
        reference, values = run(rules)
        results.append((name, reference, rules, values))
    golden.write("numpy", source, "generate_numpy.py", results)

    initial, _ = problem.problem()
    gradients = quadratic()
    results = []
    for name, rules in BORWEIN_ROWS:
        reference, values = run(rules, lambda t, _: gradients[t - 1])
        results.append((name, reference, rules, values))
    golden.write(
        "numpy_barzilai_borwein",
        source,
        "generate_numpy.py",
        results,
        problem.PARAMS,
        initial,
        gradients,
    )


if __name__ == "__main__":
    main()
