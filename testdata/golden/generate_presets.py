"""Writes presets_torch.json, presets_optax.json, presets_keras.json and
presets_adabelief.json: the presets that are named after these libraries.

Each library runs with its own defaults, apart from the options of the row. So do
the presets.
"""

import generate_keras  # noqa: I001

import contextlib
import functools
import io

import adabelief_pytorch
import keras
import optax
import torch

import generate_adabelief
import generate_optax
import generate_torch
import golden
import rows

# Optax has no default rate.
LR = {"learning_rate": 0.01}

# Large enough to show where a library adds it.
EPS = {"epsilon": 0.01}

# Steps that are large enough to show the default epsilon.
LR_1 = {"learning_rate": 1.0}

# The names of options in the libraries, where they are others.
NAMES = {
    "torch": {"learning_rate": "lr", "epsilon": "eps"},
    "optax": {"epsilon": "eps", "epsilon_inner": "eps_root"},
    "keras": {"epsilon2": "epsilon_2"},
}

# Preset, the name of the optimizer in the library, options, row name.
TORCH = [
    ("adadelta", "Adadelta", {}, "defaults"),
    ("adadelta", "Adadelta", EPS, "eps-0.01"),
    ("adadelta", "Adadelta", {"weight_decay": 0.01}, "wd-0.01"),
    ("adagrad", "Adagrad", {}, "defaults"),
    ("adagrad", "Adagrad", EPS, "eps-0.01"),
    ("adagrad", "Adagrad", LR_1, "lr-1"),
    ("adagrad", "Adagrad", {"weight_decay": 0.01}, "wd-0.01"),
    ("adam", "Adam", {}, "defaults"),
    ("adam", "Adam", EPS, "eps-0.01"),
    ("adam", "Adam", LR_1, "lr-1"),
    ("adam", "Adam", {"weight_decay": 0.01}, "wd-0.01"),
    ("adam", "Adam", {"amsgrad": True}, "amsgrad"),
    ("adamax", "Adamax", {}, "defaults"),
    ("adamax", "Adamax", EPS, "eps-0.01"),
    ("adamax", "Adamax", {"weight_decay": 0.01}, "wd-0.01"),
    ("adamw", "AdamW", {}, "defaults"),
    ("adamw", "AdamW", EPS, "eps-0.01"),
    ("adamw", "AdamW", LR_1, "lr-1"),
    ("adamw", "AdamW", {"amsgrad": True, "weight_decay": 0.1}, "amsgrad-wd-0.1"),
    ("nadam", "NAdam", {}, "defaults"),
    ("nadam", "NAdam", EPS, "eps-0.01"),
    ("nadam", "NAdam", {"weight_decay": 0.01}, "wd-0.01"),
    ("radam", "RAdam", {}, "defaults"),
    ("radam", "RAdam", EPS, "eps-0.01"),
    ("radam", "RAdam", LR_1, "lr-1"),
    ("radam", "RAdam", {"weight_decay": 0.01}, "wd-0.01"),
    ("rmsprop", "RMSprop", {}, "defaults"),
    ("rmsprop", "RMSprop", EPS, "eps-0.01"),
    ("rmsprop", "RMSprop", {"weight_decay": 0.01}, "wd-0.01"),
    ("rmsprop", "RMSprop", {"centered": True, "momentum": 0.9}, "centered-mu-0.9"),
    ("sgd", "SGD", {}, "defaults"),
    ("sgd", "SGD", {"momentum": 0.9, "weight_decay": 0.01}, "mu-0.9-wd-0.01"),
    ("sgd", "SGD", {"momentum": 0.9, "nesterov": True}, "nesterov-mu-0.9"),
]

ADABELIEF = [
    ("adabelief", "AdaBelief", {}, "defaults"),
    ("adabelief", "AdaBelief", EPS, "eps-0.01"),
]

OPTAX = [
    ("adabelief", "adabelief", LR, "defaults"),
    ("adabelief", "adabelief", LR | EPS | {"epsilon_inner": 0.0}, "eps-0.01"),
    ("adadelta", "adadelta", LR, "defaults"),
    ("adadelta", "adadelta", LR | EPS, "eps-0.01"),
    ("adagrad", "adagrad", LR, "defaults"),
    ("adagrad", "adagrad", LR | EPS, "eps-0.01"),
    ("adam", "adam", LR, "defaults"),
    ("adam", "adam", LR | EPS, "eps-0.01"),
    ("adamax", "adamax", LR, "defaults"),
    ("adamax", "adamax", LR | EPS, "eps-0.01"),
    ("adamw", "adamw", LR, "defaults"),
    ("adamw", "adamw", LR | EPS, "eps-0.01"),
    ("adamw", "adamw", LR | {"weight_decay": 0.1}, "wd-0.1"),
    ("amsgrad", "amsgrad", LR, "defaults"),
    ("amsgrad", "amsgrad", LR | EPS, "eps-0.01"),
    ("lamb", "lamb", LR, "defaults"),
    ("lamb", "lamb", LR | EPS, "eps-0.01"),
    ("lamb", "lamb", LR | {"weight_decay": 0.1}, "wd-0.1"),
    ("lion", "lion", LR, "defaults"),
    ("nadam", "nadam", LR, "defaults"),
    ("nadam", "nadam", LR | EPS, "eps-0.01"),
    ("novograd", "novograd", LR, "defaults"),
    ("novograd", "novograd", LR | EPS, "eps-0.01"),
    ("radam", "radam", LR, "defaults"),
    ("radam", "radam", LR | EPS, "eps-0.01"),
    ("radam", "radam", LR_1, "lr-1"),
    ("rmsprop", "rmsprop", LR, "defaults"),
    ("rmsprop", "rmsprop", LR | EPS, "eps-0.01"),
    ("rmsprop", "rmsprop", LR | {"momentum": 0.9}, "mu-0.9"),
    ("sgd", "sgd", LR, "defaults"),
    ("sgd", "sgd", LR | {"momentum": 0.9}, "mu-0.9"),
    ("sgd", "sgd", LR | {"momentum": 0.9, "nesterov": True}, "nesterov-mu-0.9"),
    ("yogi", "yogi", LR, "defaults"),
    ("yogi", "yogi", LR | EPS, "eps-0.01"),
]

KERAS = [
    ("adadelta", "Adadelta", {}, "defaults"),
    ("adadelta", "Adadelta", EPS, "eps-0.01"),
    ("adafactor", "Adafactor", {}, "defaults"),
    ("adafactor", "Adafactor", {"epsilon2": 1.0}, "eps2-1"),
    ("adagrad", "Adagrad", {}, "defaults"),
    ("adagrad", "Adagrad", EPS, "eps-0.01"),
    ("adagrad", "Adagrad", LR_1, "lr-1"),
    ("adam", "Adam", {}, "defaults"),
    ("adam", "Adam", EPS, "eps-0.01"),
    ("adam", "Adam", {"amsgrad": True}, "amsgrad"),
    ("adamax", "Adamax", {}, "defaults"),
    ("adamax", "Adamax", EPS, "eps-0.01"),
    ("adamw", "AdamW", {}, "defaults"),
    ("adamw", "AdamW", EPS, "eps-0.01"),
    ("adamw", "AdamW", {"amsgrad": True}, "amsgrad"),
    ("adamw", "AdamW", {"weight_decay": 0.1}, "wd-0.1"),
    ("ftrl", "Ftrl", {}, "defaults"),
    ("lamb", "Lamb", {}, "defaults"),
    ("lamb", "Lamb", EPS, "eps-0.01"),
    ("lamb", "Lamb", {"weight_decay": 0.1}, "wd-0.1"),
    ("lion", "Lion", {}, "defaults"),
    ("lion", "Lion", {"weight_decay": 0.1}, "wd-0.1"),
    ("muon", "Muon", {}, "defaults"),
    ("muon", "Muon", EPS, "eps-0.01"),
    ("nadam", "Nadam", {}, "defaults"),
    ("nadam", "Nadam", EPS, "eps-0.01"),
    ("rmsprop", "RMSprop", {}, "defaults"),
    ("rmsprop", "RMSprop", EPS, "eps-0.01"),
    ("rmsprop", "RMSprop", {"centered": True, "momentum": 0.9}, "centered-mu-0.9"),
    ("schedulefreeadamw", "ScheduleFreeAdamW", {}, "defaults"),
    ("schedulefreeadamw", "ScheduleFreeAdamW", EPS, "eps-0.01"),
    ("sgd", "SGD", {}, "defaults"),
    ("sgd", "SGD", {"momentum": 0.9}, "mu-0.9"),
    ("sgd", "SGD", {"momentum": 0.9, "nesterov": True}, "nesterov-mu-0.9"),
]


def write(name, source, family, module, library, presets, run):
    results = []
    for preset, cls, options, suffix in presets:
        rule = {"name": f"{family}/{preset}", "options": options}
        args = {NAMES[family].get(k, k): v for k, v in options.items()}
        text = ", ".join(f"{k}={v!r}" for k, v in args.items())
        reference = f"{module}.{cls}({text})"
        _, values = run(functools.partial(getattr(library, cls), **args))
        row = f"{rule['name']}/{suffix}"
        results.append((row, reference, [rule], values, golden.WIDER_TOLERANCE))
    rows.write(name, source, "generate_presets.py", results)


def run_torch(make):
    with contextlib.redirect_stdout(io.StringIO()):  # of adabelief_pytorch
        return generate_torch.run([None], lambda _, params: (make(params), ""))


def run_optax(make):
    return generate_optax.run([None], lambda _: (make(), ""))


def run_keras(make):
    return generate_keras.run([None], lambda _: (make(), ""))


def main():
    write(
        "presets_torch",
        f"{generate_torch.VERSION} (float64, CPU)",
        "torch",
        "torch.optim",
        torch.optim,
        TORCH,
        run_torch,
    )
    write(
        "presets_adabelief",
        f"{generate_adabelief.VERSION} (float64, CPU)",
        "torch",
        "adabelief_pytorch",
        adabelief_pytorch,
        ADABELIEF,
        run_torch,
    )
    write(
        "presets_optax",
        generate_optax.SOURCE,
        "optax",
        "optax",
        optax,
        OPTAX,
        run_optax,
    )
    write(
        "presets_keras",
        generate_keras.SOURCE,
        "keras",
        "keras.optimizers",
        keras.optimizers,
        KERAS,
        run_keras,
    )


if __name__ == "__main__":
    main()
