"""Writes the files of this folder; see README.md. Each optimizer makes five steps; its state is saved after the third."""

import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

from optimizer_files import load_keras, load_torch, save_keras, save_torch

HERE = pathlib.Path(__file__).parent
NAMES = ["w", "b"]
SHAPES = [(3, 2), (2,)]
STEPS, SAVED = 5, 3

keras.config.set_floatx("float64")


def start():
    return [np.sin(1.0 + i + np.arange(np.prod(s))).reshape(s) for i, s in enumerate(SHAPES)]


def gradients(step):
    return [np.cos(step * (1.0 + i + np.arange(np.prod(s)))).reshape(s) for i, s in enumerate(SHAPES)]


class AdaBelief(keras.optimizers.Optimizer):
    """The slots, their order and the formula of Keras classes of this name (AMSGrad, without rectification)."""

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-14):
        super().__init__(learning_rate=learning_rate, name="adabelief")
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.slots = [
            [self.add_variable_from_reference(v, name) for name in ("momentum", "velocity", "velocity_hat")]
            for v in variables
        ]

    def update_step(self, gradient, variable, learning_rate):
        m, s, most = self.slots[self._get_variable_index(variable)]
        t = keras.ops.cast(self.iterations + 1, variable.dtype)
        m.assign(self.beta_1 * m + (1 - self.beta_1) * gradient)
        s.assign(self.beta_2 * s + (1 - self.beta_2) * (gradient - m) ** 2 + self.epsilon)
        most.assign(torch.maximum(most.value, s.value))  # that of keras.ops rounds to float32
        step = m / (1 - self.beta_1**t) / (keras.ops.sqrt(most / (1 - self.beta_2**t)) + self.epsilon)
        self.assign_sub(variable, learning_rate * step)


TORCH = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.25}),
    "nesterov": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {"lr": 0.02, "betas": (0.8, 0.95), "weight_decay": 0.1}),
    "amsgrad": (torch.optim.Adam, {"lr": 0.02, "amsgrad": True}),
    "adamw": (torch.optim.AdamW, {"lr": 0.02}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.02}),
    "rmsprop_all": (torch.optim.RMSprop, {"lr": 0.02, "momentum": 0.5, "centered": True, "alpha": 0.9}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.5}),
    "adamax": (torch.optim.Adamax, {"lr": 0.02}),
    "nadam": (torch.optim.NAdam, {"lr": 0.02}),
    "radam": (torch.optim.RAdam, {"lr": 0.02}),
    "adadelta": (torch.optim.Adadelta, {"lr": 0.5}),
}

K = keras.optimizers
KERAS = {
    "sgd": (K.SGD, {"learning_rate": 0.1}),
    "momentum": (K.SGD, {"learning_rate": 0.1, "momentum": 0.9}),
    "nesterov": (K.SGD, {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": (K.Adam, {"learning_rate": 0.02, "beta_1": 0.8}),
    "amsgrad": (K.Adam, {"learning_rate": 0.02, "amsgrad": True}),
    "adamw": (K.AdamW, {"learning_rate": 0.02}),
    "rmsprop": (K.RMSprop, {"learning_rate": 0.02}),
    "rmsprop_all": (K.RMSprop, {"learning_rate": 0.02, "momentum": 0.5, "centered": True}),
    "adagrad": (K.Adagrad, {"learning_rate": 0.1}),
    "adamax": (K.Adamax, {"learning_rate": 0.02}),
    "nadam": (K.Nadam, {"learning_rate": 0.02}),
    "lion": (K.Lion, {"learning_rate": 0.02}),
    "lamb": (K.Lamb, {"learning_rate": 0.02}),
    "adadelta": (K.Adadelta, {"learning_rate": 0.5}),
    "adabelief": (AdaBelief, {"learning_rate": 0.02}),
    "base": (K.Adam, {"learning_rate": 0.02, "use_ema": True, "ema_momentum": 0.9, "gradient_accumulation_steps": 2}),
}


def arrays(values):
    return [np.asarray(v.detach() if hasattr(v, "detach") else v).ravel().tolist() for v in values]


def run_torch(make, options, path):
    params = [torch.nn.Parameter(torch.from_numpy(x)) for x in start()]
    optimizer = make(params, **options)
    for step in range(STEPS):
        for p, g in zip(params, gradients(step)):
            p.grad = torch.from_numpy(g)
        optimizer.step()
        if step + 1 == SAVED:
            save_torch(optimizer, NAMES, path)
            optimizer = make(params, **options)
            load_torch(optimizer, path)  # the script's own check: it goes on with what was read
            middle = arrays(params)
    return {"params": middle, "after": arrays(params)}


def run_keras(make, options, path):
    params = [keras.Variable(x, name=n) for x, n in zip(start(), NAMES)]
    optimizer = make(**options)
    optimizer.build(params)
    for step in range(STEPS):
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients(step)], params)
        if step + 1 == SAVED:
            save_keras(optimizer, NAMES, path)
            optimizer = make(**options)
            optimizer.build(params)
            load_keras(optimizer, path)
            middle = arrays(p.value for p in params)
    return {"params": middle, "after": arrays(p.value for p in params)}


def main():
    for library, rows, run in (("torch", TORCH, run_torch), ("keras", KERAS, run_keras)):
        results = {
            name: run(make, options, HERE / f"{library}_{name}.safetensors") for name, (make, options) in rows.items()
        }
        (HERE / f"{library}.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
