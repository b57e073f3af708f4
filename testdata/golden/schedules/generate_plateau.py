"""Writes plateau.json: the rates that PyTorch's and Keras' ReduceLROnPlateau set."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import keras
import torch

import golden_schedules

SCORES = [
    1.0,
    0.9,
    0.95,
    0.91,
    0.8998,
    0.89,
    0.889,
    0.8891,
    0.8892,
    0.7,
    0.71,
    0.72,
    0.73,
    0.74,
    0.75,
    0.76,
    0.77,
    0.69,
    0.7,
    0.7,
    0.7,
    0.7,
    0.7,
    0.7,
    0.7,
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
]
NEGATIVE = [-0.5 * s for s in SCORES]
RATE = 0.1


def of_torch(scores, args):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=RATE)
    s = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **args)
    rates = [RATE]
    for x in scores:
        s.step(x)
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


class Model:
    """What the callback needs of a model."""

    def __init__(self):
        self.optimizer = keras.optimizers.SGD(RATE)

    def reset(self):
        pass


def of_keras(scores, args):
    model = Model()
    c = keras.callbacks.ReduceLROnPlateau(monitor="val_loss", **args)
    c.set_model(model)
    c.on_train_begin()
    rates = [RATE]
    for epoch, x in enumerate(scores):
        c.on_epoch_end(epoch, {"val_loss": x})
        rates.append(float(model.optimizer.learning_rate.value))
    return rates


# Names of the options here, where they are other ones.
OPTIONS = {"min_lr": "min_rate", "eps": "epsilon", "min_delta": "threshold"}


def row(name, library, scores, **args):
    rates = {"torch": of_torch, "keras": of_keras}[library](scores, args)
    options = {OPTIONS.get(k, k): v for k, v in args.items()}
    if library == "keras":
        options |= {"form": "keras", "threshold_mode": "abs"}
    reference = (
        f"{library} ReduceLROnPlateau(lr={RATE}, "
        + ", ".join(f"{k}={v!r}" for k, v in args.items())
        + ")"
    )
    return {
        "name": name,
        "reference": reference,
        "rate": RATE,
        "options": options,
        "tolerance": 1e-12 if library == "torch" else 1e-6,
        "scores": scores,
        "values": rates,
    }


def rows():
    out = []
    for library, margin in (("torch", "threshold"), ("keras", "min_delta")):

        def add(name, scores, library=library, **args):
            out.append(row(f"{library}/{name}", library, scores, **args))

        add("defaults", SCORES)
        add("patience-0", SCORES, patience=0, factor=0.5)
        add("patience-1", SCORES, patience=1, factor=0.5)
        add("patience-3", SCORES, patience=3, factor=0.5)
        add("cooldown-1", SCORES, patience=1, factor=0.5, cooldown=1)
        add("cooldown-3", SCORES, patience=2, factor=0.5, cooldown=3)
        add("min", SCORES, patience=1, factor=0.3, min_lr=0.02, cooldown=1)
        add("above-min", SCORES, patience=1, factor=0.3, min_lr=0.2)
        add("threshold", SCORES, patience=1, factor=0.5, **{margin: 0.02})
        add("max", SCORES[::-1], patience=2, factor=0.5, mode="max", **{margin: 0.01})
        add("negative", NEGATIVE, patience=2, factor=0.5, **{margin: 0.04})
        add(
            "negative-max",
            NEGATIVE,
            patience=2,
            factor=0.5,
            mode="max",
            **{margin: 0.04},
        )
    out.append(
        row(
            "torch/abs",
            "torch",
            SCORES,
            patience=1,
            factor=0.5,
            threshold=0.02,
            threshold_mode="abs",
        )
    )
    out.append(
        row(
            "torch/abs-max",
            "torch",
            NEGATIVE,
            patience=1,
            factor=0.5,
            threshold=0.02,
            threshold_mode="abs",
            mode="max",
        )
    )
    out.append(row("torch/eps", "torch", SCORES, patience=1, factor=0.5, eps=0.01))
    return out


def main():
    source = f"torch {torch.__version__.split('+')[0]} (Python floats), keras {keras.__version__} (float32 rate)"
    golden_schedules.write("plateau", source, "generate_plateau.py", rows())


if __name__ == "__main__":
    main()
