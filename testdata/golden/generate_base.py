"""Writes base_keras.json: the arguments of the base class of Keras' optimizers.

The options are Keras' own names. Rows with "values" have that slot of the base
class instead of the parameters.
"""

import generate_keras  # noqa: I001

import keras
import numpy as np

import golden
import problem

# The class in Keras, the rule here, and the arguments.
OPTIMIZERS = {
    "sgd": ("SGD", {"learning_rate": 0.05}),
    "momentum": ("SGD", {"learning_rate": 0.05, "momentum": 0.75, "nesterov": True}),
    "rmsprop": ("RMSprop", {"learning_rate": 0.05}),
    "adam": ("Adam", {"learning_rate": 0.05}),
    "adamw": ("AdamW", {"learning_rate": 0.05}),
    "adagrad": ("Adagrad", {"learning_rate": 0.05}),
    "adadelta": ("Adadelta", {"learning_rate": 0.05}),
    "adamax": ("Adamax", {"learning_rate": 0.05}),
    "nadam": ("Nadam", {"learning_rate": 0.05}),
    "ftrl": ("Ftrl", {"learning_rate": 0.05}),
    "lion": ("Lion", {"learning_rate": 0.05}),
    "lamb": ("Lamb", {"learning_rate": 0.05}),
    "adafactor": ("Adafactor", {"learning_rate": 0.05}),
}
_ALIKE = {"weight_decay": 0.25, "gradient_accumulation_steps": 3, "clipnorm": 0.5}
_EMA = {"use_ema": True, "ema_momentum": 0.75}

ROWS = [
    *((f"accumulate-{name}", name, _ALIKE, ()) for name in OPTIMIZERS),
    ("weight-decay", "adam", {"weight_decay": 0.5}, ()),
    ("exclude", "adam", {"weight_decay": 0.5}, ("^[ab]$", "s")),
    ("exclude-adamw", "adamw", {"weight_decay": 0.5}, ("^[ab]$", "s")),
    ("exclude-lamb", "lamb", {"weight_decay": 0.5}, ("[bcd]",)),
    ("clipvalue", "momentum", {"clipvalue": 0.25}, ()),
    ("global-clipnorm", "momentum", {"global_clipnorm": 0.5, "weight_decay": 0.5}, ()),
    ("loss-scale", "adam", {"loss_scale_factor": 24.0, "clipnorm": 0.125}, ()),
    ("ema", "adam", {**_EMA, "weight_decay": 0.5}, ()),
    ("ema-overwrite", "adam", {**_EMA, "ema_overwrite_frequency": 4}, ()),
    ("ema-accumulate", "sgd", {**_EMA, "gradient_accumulation_steps": 2}, ()),
    (
        "ema-accumulate-overwrite",
        "adam",
        {**_EMA, "ema_overwrite_frequency": 2, "gradient_accumulation_steps": 3},
        (),
    ),
    (
        "overwrite",
        "sgd",
        {**_EMA, "weight_decay": 0.5, "loss_scale_factor": 4.0, "clipnorm": 0.125},
        (),
    ),
    (
        "overwrite-accumulate",
        "adam",
        {**_EMA, "weight_decay": 0.5, "gradient_accumulation_steps": 2},
        (),
    ),
]
OVERWRITTEN = ("a", "s")


def run(name, optimizer, base, exclude, averages):
    cls, args = OPTIMIZERS[optimizer]
    args = {**args, **base}
    overwritten = OVERWRITTEN if name.startswith("overwrite") else ()
    initial, gradients = problem.problem()
    params = []
    for (param, _), x in zip(problem.PARAMS, initial, strict=True):
        v = keras.Variable(x, dtype="float64", name=param)
        v.overwrite_with_gradient = param in overwritten
        params.append(v)
    opt = getattr(keras.optimizers, cls)(**args)
    if exclude:
        opt.exclude_from_weight_decay(var_names=list(exclude))
    opt.build(params)
    values = []
    for grads in gradients:
        opt.apply([keras.ops.convert_to_tensor(g, dtype="float64") for g in grads])
        shown = opt._model_variables_moving_average if averages else params
        values.append([np.array(p.value) for p in shown])
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    text = f"keras.optimizers.{cls}({text})"
    options = dict(args)
    if exclude:
        text += f", exclude_from_weight_decay(var_names={list(exclude)})"
        options["exclude_from_weight_decay"] = list(exclude)
    if overwritten:
        text += f", overwrite_with_gradient: {', '.join(overwritten)}"
        options["overwrite_with_gradient"] = list(overwritten)
    if "use_ema" in base and "gradient_accumulation_steps" in base:
        options["keras_strict"] = True
    rule = "sgd" if optimizer == "momentum" else optimizer
    rule = {"name": "keras/" + rule, "options": options}
    if averages:
        rule["values"] = "average"
    return text, [rule], values


def main():
    results = []
    for name, optimizer, base, exclude in ROWS:
        text, rules, values = run(name, optimizer, base, exclude, False)
        results.append((f"base/{name}", text, rules, values))
        if "use_ema" in base and not name.startswith("overwrite"):
            text, rules, values = run(name, optimizer, base, exclude, True)
            results.append((f"base/{name}-average", text, rules, values))
    golden.write("base_keras", generate_keras.SOURCE, "generate_base.py", results)


if __name__ == "__main__":
    main()
