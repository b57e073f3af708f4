"""Writes wrappers_addons.json: rules within the wrappers of tensorflow_addons.

A rule that has "within" is a wrapper of that rule. With "values" the row has the
values of that slot of the wrapper, instead of the parameters.
"""

import warnings

warnings.filterwarnings("ignore", module="tensorflow_addons")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tensorflow_addons as tfa  # noqa: E402

import generate_addons  # noqa: E402
import golden  # noqa: E402
import problem  # noqa: E402
import tf_rows  # noqa: E402
from tf_rows import rule  # noqa: E402

_MOMENTUM = (
    rule("momentum", learning_rate=0.05, momentum=0.9, rate_inside=True),
    "tf.keras.optimizers.legacy.SGD",
    {"learning_rate": 0.05, "momentum": 0.9},
)
_ADAM = (
    rule("adam", learning_rate=0.02, epsilon=1e-3, epsilon_hat=True),
    "tf.keras.optimizers.legacy.Adam",
    {"learning_rate": 0.02, "epsilon": 1e-3},
)
_RADAM = (
    rule("radam", learning_rate=0.02, beta1=0.95, epsilon=1e-7),
    "tfa.optimizers.RectifiedAdam",
    {"learning_rate": 0.02, "beta_1": 0.95, "epsilon": 1e-7},
)

# The wrapper, its options here, its arguments there, and what it wraps. The options
# have the names of the arguments.
ROWS = [
    ("Lookahead", {}, _ADAM),
    ("Lookahead", {"sync_period": 5, "slow_step_size": 0.3}, _MOMENTUM),
    ("Lookahead", {"sync_period": 6, "slow_step_size": 0.45}, _RADAM),
    ("Lookahead", {"sync_period": 1, "slow_step_size": 0.7}, _ADAM),
    ("MovingAverage", {"average_decay": 0.875}, _MOMENTUM),
    ("MovingAverage", {"average_decay": 0.75, "start_step": 7}, _ADAM),
    (
        "MovingAverage",
        {"average_decay": 0.5, "dynamic_decay": True, "start_step": 3},
        _MOMENTUM,
    ),
    ("MovingAverage", {"average_decay": 0.875, "num_updates": 6}, _ADAM),
    ("SWA", {"average_period": 1}, _MOMENTUM),
    ("SWA", {"start_averaging": 4, "average_period": 3}, _ADAM),
]

# MovingAverage computes its decay in float32. SWA takes only float32 variables.
TOLERANCE = {
    "Lookahead": golden.WIDER_TOLERANCE,
    "MovingAverage": {"float64": 2e-7, "float32": 2e-5},
    "SWA": {"float64": 5e-6, "float32": 2e-5},
}
NAMES = {"Lookahead": "lookahead", "MovingAverage": "moving_average", "SWA": "swa"}


def run(cls, args, within, initial, gradients):
    _, name, inner_args = within
    module = tfa.optimizers if name.startswith("tfa") else tf.keras.optimizers.legacy
    inner = getattr(module, name.rsplit(".", 1)[1])(**inner_args)
    wrapper = getattr(tfa.optimizers, cls)(inner, **args)
    dtype = tf.float32 if cls == "SWA" else tf.float64
    if dtype == tf.float64:
        tf_rows.exact_hypers(inner)
        tf_rows.exact_hypers(wrapper)
    if cls == "MovingAverage":
        decay = float(wrapper._hyper["average_decay"])
        wrapper._hyper["average_decay"] = tf.constant(decay, tf.float32)
    variables = [
        tf.Variable(x, dtype=dtype, name=f"p{i}") for i, x in enumerate(initial)
    ]
    values = []
    for grads in gradients:
        pairs = [
            (tf.constant(g, dtype), v) for g, v in zip(grads, variables, strict=True)
        ]
        wrapper.apply_gradients(pairs)
        shown = variables
        if cls != "Lookahead":
            shown = [wrapper.get_slot(v, "average") for v in variables]
        values.append([np.asarray(v.numpy(), np.float64) for v in shown])
    arguments = ", ".join(f"{k}={v!r}" for k, v in args.items())
    inside = tf_rows.call(name, inner_args)
    reference = f"tfa.optimizers.{cls}({inside}{', ' if args else ''}{arguments})"
    return reference, values


def main():
    initial, gradients = problem.problem()
    results = []
    for i, (cls, args, within) in enumerate(ROWS):
        reference, values = run(cls, args, within, initial, gradients)
        outer = {"name": NAMES[cls], "options": args, "within": within[0]}
        if cls != "Lookahead":
            outer["values"] = "average"
        name = f"wrappers/{NAMES[cls]}-{i}"
        results.append((name, reference, [outer], values, TOLERANCE[cls]))
    golden.write(
        "wrappers_addons", generate_addons.SOURCE, "generate_wrappers_tf.py", results
    )


if __name__ == "__main__":
    main()
