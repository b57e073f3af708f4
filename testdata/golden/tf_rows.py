"""Rules and runners shared by the scripts for TensorFlow and Theano.

A row is one rule of this library with all of its options written out, and the
optimizer of another library that does the same. Everything runs in float64:
TensorFlow turns a Python float into a float32 number unless told otherwise, so
all hyperparameters are handed over as float64 tensors.
"""

import golden


def _without(options, name):
    return {k: v for k, v in options.items() if k != name}


# All options of each rule, with this library's defaults. TensorFlow's AdaBelief
# adds the weight decay to the direction; nesterov is said by the rule's name.
_DEFAULTS = golden.OPTIONS | {
    "momentum": _without(golden.OPTIONS["momentum"], "nesterov"),
    "nesterov": _without(golden.OPTIONS["nesterov"], "nesterov"),
    "adabelief": golden.OPTIONS["adabelief"] | {"decay": "direction"},
    "sgd": {"learning_rate": 0.01},
    "amsgrad": {
        "learning_rate": 0.001,
        "decay": False,
        "beta1": 0.9,
        "beta2": 0.99,
        "epsilon": 0.0,
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
