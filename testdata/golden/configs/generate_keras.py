"""Writes keras.json: optimizers as Keras serializes them.

Every class has a row with its defaults and one with other values for all of its
own options; further rows have the arguments of the base class and schedules.
float64 keeps the numbers as they are written here.
"""

import json
import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"

import keras

keras.backend.set_floatx("float64")

O, S = keras.optimizers, keras.optimizers.schedules

OWN = {
    "SGD": {"learning_rate": 0.5, "momentum": 0.75, "nesterov": True},
    "RMSprop": {
        "learning_rate": 0.5,
        "rho": 0.75,
        "momentum": 0.25,
        "epsilon": 1e-3,
        "centered": True,
    },
    "Adam": {
        "learning_rate": 0.5,
        "beta_1": 0.75,
        "beta_2": 0.875,
        "epsilon": 1e-3,
        "amsgrad": True,
    },
    "AdamW": {
        "learning_rate": 0.5,
        "weight_decay": 0.125,
        "beta_1": 0.75,
        "beta_2": 0.875,
        "epsilon": 1e-3,
        "amsgrad": True,
    },
    "Adagrad": {
        "learning_rate": 0.5,
        "initial_accumulator_value": 0.25,
        "epsilon": 1e-3,
    },
    "Adadelta": {"learning_rate": 0.5, "rho": 0.75, "epsilon": 1e-3},
    "Adamax": {
        "learning_rate": 0.5,
        "beta_1": 0.75,
        "beta_2": 0.875,
        "epsilon": 1e-3,
    },
    "Adafactor": {
        "learning_rate": 0.5,
        "beta_2_decay": -0.5,
        "epsilon_1": 1e-20,
        "epsilon_2": 0.01,
        "clip_threshold": 2.0,
        "relative_step": False,
    },
    "Nadam": {
        "learning_rate": 0.5,
        "beta_1": 0.75,
        "beta_2": 0.875,
        "epsilon": 1e-3,
    },
    "Ftrl": {
        "learning_rate": 0.5,
        "learning_rate_power": -0.25,
        "initial_accumulator_value": 0.25,
        "l1_regularization_strength": 0.01,
        "l2_regularization_strength": 0.02,
        "l2_shrinkage_regularization_strength": 0.03,
        "beta": 0.04,
    },
    "Lion": {
        "learning_rate": 0.5,
        "beta_1": 0.75,
        "beta_2": 0.875,
        "weight_decay": 0.125,
    },
    "Lamb": {
        "learning_rate": 0.5,
        "beta_1": 0.75,
        "beta_2": 0.875,
        "epsilon": 1e-3,
        "weight_decay": 0.125,
    },
    "Muon": {
        "learning_rate": 0.5,
        "adam_beta_1": 0.75,
        "adam_beta_2": 0.875,
        "adam_weight_decay": 0.0625,
        "epsilon": 1e-3,
        "weight_decay": 0.125,
        "exclude_layers": ["norm", "^head"],
        "exclude_embeddings": False,
        "muon_a": 3.0,
        "muon_b": -4.0,
        "muon_c": 2.0,
        "adam_lr_ratio": 0.5,
        "momentum": 0.75,
        "ns_steps": 6,
        "nesterov": False,
        "rms_rate": None,
    },
    "ScheduleFreeAdamW": {
        "learning_rate": 0.5,
        "beta_1": 0.75,
        "beta_2": 0.875,
        "epsilon": 1e-3,
        "warmup_steps": 10,
        "weight_decay": 0.125,
    },
}

BASE = {
    "weight_decay": {"weight_decay": 0.125},
    "clipnorm": {"clipnorm": 2.0},
    "clipvalue": {"clipvalue": 2.0},
    "global_clipnorm": {"global_clipnorm": 2.0},
    "ema": {
        "use_ema": True,
        "ema_momentum": 0.75,
        "ema_overwrite_frequency": 5,
    },
    "unused-ema": {"ema_momentum": 0.75, "ema_overwrite_frequency": 5},
    "loss_scale_factor": {"loss_scale_factor": 8.0},
    "accumulation": {"gradient_accumulation_steps": 3},
    "name": {"name": "mine"},
}

SCHEDULES = {
    "exponential": S.ExponentialDecay(0.1, 10, 0.5, staircase=True),
    "piecewise": S.PiecewiseConstantDecay([5, 10], [1.0, 0.5, 0.1]),
    "polynomial": S.PolynomialDecay(0.1, 10, 0.01, power=2.0, cycle=True),
    "inverse": S.InverseTimeDecay(0.1, 10, 0.5, staircase=True),
    "cosine": S.CosineDecay(0.1, 10, alpha=0.1),
    "cosine-warmup": S.CosineDecay(
        0.01, 10, alpha=0.1, warmup_target=0.1, warmup_steps=5
    ),
    "restarts": S.CosineDecayRestarts(0.1, 10, t_mul=1.5, m_mul=0.8, alpha=0.1),
}


def rows():
    for name, own in OWN.items():
        cls = getattr(O, name)
        yield name.lower(), cls()
        yield f"{name.lower()}/own", cls(**own)
    for name, base in BASE.items():
        yield f"rmsprop/{name}", O.RMSprop(**base)
    for name, schedule in SCHEDULES.items():
        yield f"adam/{name}", O.Adam(learning_rate=schedule)
    yield "lossscaleoptimizer", O.LossScaleOptimizer(
        O.SGD(momentum=0.5, clipnorm=1.0),
        initial_scale=8.0,
        dynamic_growth_steps=3,
    )
    yield "multioptimizer", O.MultiOptimizer(
        O.OptimizerMap(O.SGD(), {"dense/.*": O.Adam(0.5), "bias": O.Lion()}),
        loss_scale_factor=4.0,
    )


def main():
    out = {
        "source": f"keras {keras.__version__}, keras.optimizers.serialize",
        "rows": [
            {"name": name, "keras": O.serialize(optimizer)}
            for name, optimizer in rows()
        ],
    }
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "keras.json"), "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
