"""Rules, runners and writer shared by the scripts for TensorFlow and Theano.

A row is one rule of this library with all of its options written out, and the
optimizer of another library that does the same. Everything runs in float64:
TensorFlow turns a Python float into a float32 number unless told otherwise, so
all hyperparameters are handed over as float64 tensors.
"""

import json
import os

import numpy as np

import problem

# Summation order, fused kernels and pow differ between libraries, so the
# float64 limit is looser than for torch.json and optax.json.
TOLERANCE = {"float64": 1e-10, "float32": 2e-5}

# All options of each rule, with this library's defaults.
_DEFAULTS = {
    "sgd": {"learning_rate": 0.01},
    "momentum": {
        "learning_rate": 0.01,
        "momentum": 0.9,
        "dampening": 0.0,
        "rate_inside": False,
    },
    "nesterov": {
        "learning_rate": 0.01,
        "momentum": 0.9,
        "dampening": 0.0,
        "rate_inside": False,
    },
    "sgdw": {
        "learning_rate": 0.001,
        "momentum": 0.0,
        "nesterov": False,
        "weight_decay": 0.0,
    },
    "rmsprop": {
        "learning_rate": 0.001,
        "rho": 0.9,
        "momentum": 0.0,
        "epsilon": 1e-8,
        "centered": False,
        "epsilon_inside": False,
        "rate_outside": False,
        "initial_value": 0.0,
        "max_scaling": 0.0,
    },
    "adagrad": {
        "learning_rate": 0.01,
        "initial_accumulator_value": 0.0,
        "epsilon": 1e-10,
        "epsilon_inside": False,
        "rate_decay": 0.0,
    },
    "adadelta": {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-6},
    "adam": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "epsilon_hat": False,
        "amsgrad": False,
        "max_corrected": False,
    },
    "adamw": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "epsilon_hat": False,
        "amsgrad": False,
        "max_corrected": False,
        "weight_decay": 0.01,
        "rate_independent": False,
    },
    "adamax": {
        "learning_rate": 0.002,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "epsilon_inside_max": False,
    },
    "nadam": {
        "learning_rate": 0.002,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "momentum_decay": 0.004,
        "form": "scheduled",
    },
    "radam": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "sma_threshold": 5.0,
        "epsilon_hat": False,
        "amsgrad": False,
        "weight_decay": 0.0,
        "total_steps": 0,
        "warmup_proportion": 0.1,
        "min_learning_rate": 0.0,
    },
    "adabelief": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-14,
        "amsgrad": False,
        "rectify": True,
        "sma_threshold": 5.0,
        "total_steps": 0,
        "warmup_proportion": 0.1,
        "min_learning_rate": 0.0,
        "literal_warmup": False,
        "weight_decay": 0.0,
        "decay": "direction",
        "epsilon_hat": False,
        "degenerated_to_sgd": True,
        "epsilon_inner": -1.0,
    },
    "amsgrad": {
        "learning_rate": 0.001,
        "decay": False,
        "beta1": 0.9,
        "beta2": 0.99,
        "epsilon": 0.0,
    },
    "ftrl": {
        "learning_rate": 0.001,
        "learning_rate_power": -0.5,
        "initial_accumulator_value": 0.1,
        "l1": 0.0,
        "l2": 0.0,
        "l2_shrinkage": 0.0,
        "beta": 0.0,
    },
    "proximal_gradient_descent": {"learning_rate": 0.01, "l1": 0.0, "l2": 0.0},
    "proximal_adagrad": {
        "learning_rate": 0.001,
        "initial_accumulator_value": 0.1,
        "l1": 0.0,
        "l2": 0.0,
    },
    "adagrad_da": {
        "learning_rate": 0.001,
        "initial_accumulator_value": 0.1,
        "l1": 0.0,
        "l2": 0.0,
    },
    "normalized_sgd": {"learning_rate": 0.01},
    "neural_optimizer1": {
        "learning_rate": 0.01,
        "beta1": 0.9,
        "decrease_factor": 0.1,
    },
    "grad_variance_scaled": {
        "learning_rate": 0.01,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
    },
    "lamb": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-6,
        "weight_decay": 0.0,
    },
    "novograd": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-7,
        "weight_decay": 0.0,
        "grad_averaging": False,
        "amsgrad": False,
    },
    "yogi": {
        "learning_rate": 0.01,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-3,
        "l1": 0.0,
        "l2": 0.0,
        "initial_accumulator_value": 1e-6,
        "initial_momentum": 0.0,
        "activation": "sign",
        "epsilon_hat": True,
    },
    "cocob": {"alpha": 100.0},
    "conditional_gradient": {
        "learning_rate": 0.01,
        "lambda": 0.01,
        "epsilon": 1e-7,
        "ord": "fro",
    },
    "scale": {"learning_rate": 1.0},
    "basic_momentum": {"momentum": 0.0},
    "basic_rmsprop": {"rho": 0.9, "max_scaling": 1e5},
    "step_clipping": {"threshold": 0.0},
    "variable_clipping": {"threshold": 0.0, "axes": []},
    "blocks_adam": {
        "learning_rate": 0.002,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "decay_factor": 1.0,
        "old_betas": False,
    },
}


def rule(name, **options):
    """The rule with all of its options: the given ones, else the defaults."""
    unknown = set(options) - set(_DEFAULTS[name])
    if unknown:
        raise ValueError(f"{name} has no option {sorted(unknown)}")
    return {"name": name, "options": {**_DEFAULTS[name], **options}}


def call(name, args):
    """The Python code that makes an optimizer, for the reference of a row."""
    return f"{name}({', '.join(f'{k}={v!r}' for k, v in args.items())})"


def run_eager(optimizer, initial, gradients, **apply_args):
    """Runs a TensorFlow or Keras 2 optimizer in eager mode.

    Returns one list of arrays per step.
    """
    import tensorflow as tf

    variables = [
        tf.Variable(x, dtype=tf.float64, name=f"p{i}") for i, x in enumerate(initial)
    ]
    values = []
    for grads in gradients:
        pairs = [
            (tf.constant(g, tf.float64), v)
            for g, v in zip(grads, variables, strict=True)
        ]
        optimizer.apply_gradients(pairs, **apply_args)
        values.append([v.numpy().copy() for v in variables])
    return values


def exact_hypers(optimizer):
    """Makes an old-style Keras optimizer compute in float64 throughout.

    Such an optimizer keeps its hyperparameters in float32 variables, unless
    they are tensors. To be called before the first step.
    """
    import tensorflow as tf

    for name, value in optimizer._hyper.items():
        if isinstance(value, float):
            optimizer._hyper[name] = tf.constant(value, tf.float64)
    return optimizer


def _flat(params, arrays):
    """One flat list of floats per parameter, row-major."""
    lists = []
    for (_, shape), x in zip(params, arrays, strict=True):
        x = np.asarray(x)
        if x.dtype != np.float64 or x.shape != tuple(shape):
            raise ValueError(f"got {x.dtype} {x.shape}, want float64 {shape}")
        if not np.isfinite(x).all():
            raise ValueError("value is not finite")
        lists.append(x.reshape(-1).tolist())
    return lists


def _compact(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _steps(steps, indent):
    """A JSON array with one step per line."""
    pad = " " * indent
    return "[\n" + ",\n".join(pad + " " + _compact(s) for s in steps) + "\n" + pad + "]"


def write(name, source, generator, results, params=None, initial=None, gradients=None):
    """Writes the golden file <name>.json, next to this script.

    results has one (row name, reference, rules, values) tuple per row, where
    values has one list of arrays per step. A fifth item, if there is one, is
    the tolerance of that row. The problem is that of problem.py unless another
    is given. Floats are written in the shortest form that reads back as the
    same float64.
    """
    if params is None:
        params = problem.PARAMS
        initial, gradients = problem.problem()
    head = [
        {"name": param, "shape": list(shape), "value": value}
        for (param, shape), value in zip(params, _flat(params, initial), strict=True)
    ]

    out = ["{\n"]
    out.append(f' "source": {_compact(source)},\n')
    out.append(f' "generator": {_compact(generator)},\n')
    out.append(' "problem": {\n')
    out.append(f'  "params": {_steps(head, 2)},\n')
    out.append(f'  "gradients": {_steps([_flat(params, g) for g in gradients], 2)}\n')
    out.append(" },\n")
    out.append(' "rows": [\n')
    for i, (row, reference, rules, values, *rest) in enumerate(results):
        (tolerance,) = rest or (TOLERANCE,)
        if len(values) != len(gradients):
            raise ValueError(f"{row}: {len(values)} steps")
        out.append("  {\n")
        out.append(f'   "name": {_compact(row)},\n')
        out.append(f'   "reference": {_compact(reference)},\n')
        out.append(f'   "rules": {_compact(rules)},\n')
        out.append(f'   "tolerance": {_compact(tolerance)},\n')
        out.append(f'   "values": {_steps([_flat(params, v) for v in values], 3)}\n')
        out.append("  },\n" if i + 1 < len(results) else "  }\n")
    out.append(" ]\n}\n")

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".json")
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(out))
