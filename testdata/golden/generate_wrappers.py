"""Writes wrappers_keras.json: the option use_ema of Keras' optimizers.

See generate_wrappers_tf.py for the form of the rows.
"""

import generate_keras  # noqa: I001

import keras
import numpy as np

import golden
import problem
import rows

_ADAM = rows._rule("adam", 0.05, (0.9, 0.999), 1e-3, epsilon_hat=True)
_MOMENTUM = rows._rule("momentum", 0.05, momentum=0.9, rate_inside=True)

# What is wrapped, the momentum and the frequency, and whether the row has the averages.
ROWS = [
    ("adam", _ADAM, 0.9, 0, True),
    ("adam-overwrite-4", _ADAM, 0.8, 4, False),
    ("adam-overwrite-4-average", _ADAM, 0.8, 4, True),
    ("momentum", _MOMENTUM, 0.99, 0, True),
    ("momentum-overwrite-1", _MOMENTUM, 0.5, 1, False),
]


def run(rule, momentum, frequency, averages):
    initial, gradients = problem.problem()
    params = [keras.Variable(x, dtype="float64") for x in initial]
    o = rule["options"]
    args = {"learning_rate": o["learning_rate"]}
    if rule["name"] == "adam":
        cls = "Adam"
        args |= {"beta_1": o["beta1"], "beta_2": o["beta2"], "epsilon": o["epsilon"]}
    else:
        cls = "SGD"
        args["momentum"] = o["momentum"]
    args |= {"use_ema": True, "ema_momentum": momentum}
    args["ema_overwrite_frequency"] = frequency or None
    opt = getattr(keras.optimizers, cls)(**args)
    opt.build(params)
    values = []
    for grads in gradients:
        opt.apply([keras.ops.convert_to_tensor(g, dtype="float64") for g in grads])
        shown = opt._model_variables_moving_average if averages else params
        values.append([np.array(p.value) for p in shown])
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    return f"keras.optimizers.{cls}({text})", values


def main():
    results = []
    for name, rule, momentum, frequency, averages in ROWS:
        reference, values = run(rule, momentum, frequency, averages)
        options = {"ema_momentum": momentum, "ema_overwrite_frequency": frequency}
        outer = {"name": "ema", "options": options, "within": rule}
        if averages:
            outer["values"] = "average"
        row = (f"wrappers/ema-{name}", reference, [outer], values)
        results.append((*row, golden.WIDER_TOLERANCE))
    golden.write(
        "wrappers_keras", generate_keras.SOURCE, "generate_wrappers.py", results
    )


if __name__ == "__main__":
    main()
