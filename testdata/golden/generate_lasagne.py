"""Writes lasagne.json: the golden rows computed by lasagne.updates.

    python generate_lasagne.py CHECKOUT

CHECKOUT is a working copy of https://github.com/Lasagne/Lasagne. Its updates
module runs on Aesara, the successor of Theano, under the name of the latter; the
rest of the package does not, so only that module is loaded.
"""

import importlib
import os
import sys
import types

import aesara
import aesara.tensor
import numpy as np

import golden
import problem
import tf_rows
from tf_rows import rule

# Row name, rule, function and its arguments.
ROWS = [
    ("lasagne/sgd", rule("sgd", learning_rate=0.1), "sgd", {"learning_rate": 0.1}),
    (
        "lasagne/momentum",
        rule("momentum", learning_rate=0.05, momentum=0.9, rate_inside=True),
        "momentum",
        {"learning_rate": 0.05, "momentum": 0.9},
    ),
    (
        "lasagne/nesterov",
        rule("nesterov", learning_rate=0.05, momentum=0.9, rate_inside=True),
        "nesterov_momentum",
        {"learning_rate": 0.05, "momentum": 0.9},
    ),
    (
        "lasagne/adagrad",
        rule("adagrad", learning_rate=0.1, epsilon=1e-6, epsilon_inside=True),
        "adagrad",
        {"learning_rate": 0.1, "epsilon": 1e-6},
    ),
    (
        "lasagne/adagrad-eps-0.1",
        rule("adagrad", learning_rate=0.1, epsilon=0.1, epsilon_inside=True),
        "adagrad",
        {"learning_rate": 0.1, "epsilon": 0.1},
    ),
    (
        "lasagne/rmsprop",
        rule("rmsprop", learning_rate=0.01, epsilon=1e-6, epsilon_inside=True),
        "rmsprop",
        {"learning_rate": 0.01, "rho": 0.9, "epsilon": 1e-6},
    ),
    (
        "lasagne/rmsprop-eps-1e-2",
        rule("rmsprop", learning_rate=0.05, rho=0.5, epsilon=1e-2, epsilon_inside=True),
        "rmsprop",
        {"learning_rate": 0.05, "rho": 0.5, "epsilon": 1e-2},
    ),
    (
        "lasagne/adadelta",
        rule("adadelta", learning_rate=1.0, rho=0.95, epsilon=1e-6),
        "adadelta",
        {"learning_rate": 1.0, "rho": 0.95, "epsilon": 1e-6},
    ),
    (
        "lasagne/adam",
        rule("adam", learning_rate=0.01, epsilon_hat=True),
        "adam",
        {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    ),
    (
        "lasagne/amsgrad",
        rule(
            "adam",
            learning_rate=0.01,
            beta2=0.9,
            epsilon=1e-3,
            epsilon_hat=True,
            amsgrad=True,
        ),
        "amsgrad",
        {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.9, "epsilon": 1e-3},
    ),
    (
        "lasagne/adamax",
        rule("adamax", learning_rate=0.01, beta1=0.8, beta2=0.9, epsilon=1e-2),
        "adamax",
        {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-2},
    ),
]

# The same, with momentum applied to the result of rmsprop. The second kind of
# momentum is a chain of two rules.
RMSPROP = rule("rmsprop", learning_rate=0.01, epsilon=1e-6, epsilon_inside=True)
MOMENTUM_ROWS = [
    (
        "lasagne/rmsprop-momentum",
        [{**RMSPROP, "options": {**RMSPROP["options"], "momentum": 0.9}}],
        "apply_momentum",
    ),
    (
        "lasagne/rmsprop-nesterov",
        [
            RMSPROP,
            rule("nesterov", learning_rate=1.0, momentum=0.9, rate_inside=True),
        ],
        "apply_nesterov_momentum",
    ),
]


def load_updates(checkout):
    sys.modules["theano"] = aesara
    sys.modules["theano.tensor"] = aesara.tensor
    package = types.ModuleType("lasagne")
    package.__path__ = [os.path.join(checkout, "lasagne")]
    sys.modules["lasagne"] = package
    return importlib.import_module("lasagne.updates")


def run(make_updates):
    """make_updates maps the gradients and parameters to Lasagne's updates."""
    initial, gradients = problem.problem()
    params = [aesara.shared(x.copy()) for x in initial]
    fed = [p.type() for p in params]
    updates = list(make_updates(fed, params).items())
    step = aesara.function(fed, [], updates=updates)
    values = []
    for grads in gradients:
        step(*grads)
        values.append([np.asarray(p.get_value()).copy() for p in params])
    return values


def main():
    # No compiler needed, and no rewrites that change the order of operations.
    aesara.config.mode = "FAST_COMPILE"
    aesara.config.cxx = ""
    updates = load_updates(sys.argv[1])
    results = []
    for name, r, function, args in ROWS:
        f = getattr(updates, function)
        values = run(lambda grads, params, f=f, args=args: f(grads, params, **args))
        results.append(
            (name, tf_rows.call("lasagne.updates." + function, args), [r], values)
        )
    for name, rules, function in MOMENTUM_ROWS:
        f = getattr(updates, function)
        values = run(
            lambda grads, params, f=f: f(
                updates.rmsprop(grads, params, 0.01, 0.9, 1e-6), params, 0.9
            )
        )
        reference = f"lasagne.updates.{function}(lasagne.updates.rmsprop(...), 0.9)"
        results.append((name, reference, rules, values))
    source = f"Lasagne 5d3c63cb with aesara {aesara.__version__} (float64, CPU)"
    golden.write("lasagne", source, "generate_lasagne.py", results)


if __name__ == "__main__":
    main()
