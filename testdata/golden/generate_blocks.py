"""Writes blocks.json and blocks_axes.json: the golden rows computed by Blocks.

    python generate_blocks.py CHECKOUT OLD_CHECKOUT

Both are working copies of https://github.com/mila-iqia/blocks: the newest one,
and one from before commit a31ef0ba, where Adam's betas are the weight of the new
value. The step rules run on Aesara, the successor of Theano; the rest of the
package does not, so only the modules they need are loaded.
"""

import collections
import collections.abc
import importlib
import os
import sys
import types

import aesara
import aesara.graph.basic
import aesara.tensor
import aesara.tensor.sharedvar
import numpy as np

import golden
import problem
import tf_rows
from tf_rows import rule


def _momentum(lr, mu):
    return rule("momentum", learning_rate=lr, momentum=mu, rate_inside=True)


def _rmsprop(lr, rho, max_scaling):
    return rule(
        "rmsprop", learning_rate=lr, rho=rho, epsilon=0.0, max_scaling=max_scaling
    )


# Row name, rules, and the step rules as (class, arguments) pairs; more than one
# are put into a CompositeRule.
ROWS = [
    (
        "blocks/scale",
        [rule("scale", learning_rate=0.1)],
        [("Scale", {"learning_rate": 0.1})],
    ),
    (
        "blocks/basic-momentum",
        [rule("basic_momentum", momentum=0.5)],
        [("BasicMomentum", {"momentum": 0.5})],
    ),
    (
        "blocks/momentum",
        [_momentum(0.05, 0.9)],
        [("Momentum", {"learning_rate": 0.05, "momentum": 0.9})],
    ),
    (
        "blocks/momentum-then-scale",
        [rule("basic_momentum", momentum=0.9), rule("scale", learning_rate=0.05)],
        [("BasicMomentum", {"momentum": 0.9}), ("Scale", {"learning_rate": 0.05})],
    ),
    (
        "blocks/adadelta",
        [rule("adadelta", learning_rate=1.0, rho=0.95, epsilon=1e-6)],
        [("AdaDelta", {"decay_rate": 0.95, "epsilon": 1e-6})],
    ),
    (
        "blocks/basic-rmsprop",
        [rule("basic_rmsprop", rho=0.9, max_scaling=1e5)],
        [("BasicRMSProp", {"decay_rate": 0.9, "max_scaling": 1e5})],
    ),
    (
        "blocks/basic-rmsprop-scaling-5",
        [rule("basic_rmsprop", rho=0.5, max_scaling=5.0)],
        [("BasicRMSProp", {"decay_rate": 0.5, "max_scaling": 5.0})],
    ),
    (
        "blocks/rmsprop",
        [_rmsprop(0.01, 0.9, 1e5)],
        [
            (
                "RMSProp",
                {"learning_rate": 0.01, "decay_rate": 0.9, "max_scaling": 1e5},
            )
        ],
    ),
    (
        "blocks/rmsprop-scaling-5",
        [_rmsprop(0.05, 0.5, 5.0)],
        [
            (
                "RMSProp",
                {"learning_rate": 0.05, "decay_rate": 0.5, "max_scaling": 5.0},
            )
        ],
    ),
    (
        "blocks/clip-then-scale",
        [rule("step_clipping", threshold=1.0), rule("scale", learning_rate=0.1)],
        [("StepClipping", {"threshold": 1.0}), ("Scale", {"learning_rate": 0.1})],
    ),
    (
        "blocks/scale-then-clip",
        [rule("scale", learning_rate=0.1), rule("step_clipping", threshold=0.05)],
        [("Scale", {"learning_rate": 0.1}), ("StepClipping", {"threshold": 0.05})],
    ),
    (
        "blocks/variable-clipping",
        [rule("scale", learning_rate=0.1), rule("variable_clipping", threshold=1.5)],
        [("Scale", {"learning_rate": 0.1}), ("VariableClipping", {"threshold": 1.5})],
    ),
    (
        "blocks/adagrad",
        [rule("adagrad", learning_rate=0.002, epsilon=1e-6)],
        [("AdaGrad", {"learning_rate": 0.002, "epsilon": 1e-6})],
    ),
    (
        "blocks/adagrad-eps-0.1",
        [rule("adagrad", learning_rate=0.1, epsilon=0.1)],
        [("AdaGrad", {"learning_rate": 0.1, "epsilon": 0.1})],
    ),
    ("blocks/adam", [rule("blocks_adam")], [("Adam", {})]),
    (
        "blocks/adam-decay-0.9",
        [
            rule(
                "blocks_adam",
                learning_rate=0.02,
                beta1=0.8,
                beta2=0.99,
                epsilon=1e-3,
                decay_factor=0.9,
            )
        ],
        [
            (
                "Adam",
                {
                    "learning_rate": 0.02,
                    "beta1": 0.8,
                    "beta2": 0.99,
                    "epsilon": 1e-3,
                    "decay_factor": 0.9,
                },
            )
        ],
    ),
]

OLD_ROWS = [
    (
        "blocks/adam-old",
        [
            rule(
                "blocks_adam",
                beta1=0.1,
                beta2=0.001,
                decay_factor=1 - 1e-8,
                old_betas=True,
            )
        ],
        [("Adam", {})],
    ),
    (
        "blocks/adam-old-decay-0.9",
        [
            rule(
                "blocks_adam",
                learning_rate=0.02,
                beta1=0.2,
                beta2=0.01,
                epsilon=1e-3,
                decay_factor=0.9,
                old_betas=True,
            )
        ],
        [
            (
                "Adam",
                {
                    "learning_rate": 0.02,
                    "beta1": 0.2,
                    "beta2": 0.01,
                    "epsilon": 1e-3,
                    "decay_factor": 0.9,
                },
            )
        ],
    ),
]

# Axes must exist, so these leave out the scalar and the vector.
AXES_ROWS = [
    (
        f"blocks/variable-clipping-axes-{'-'.join(map(str, axes))}",
        [
            rule("scale", learning_rate=0.1),
            rule("variable_clipping", threshold=1.0, axes=axes),
        ],
        [
            ("Scale", {"learning_rate": 0.1}),
            ("VariableClipping", {"threshold": 1.0, "axis": axes}),
        ],
    )
    for axes in ([0], [1], [0, 1])
]


def _module(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def prepare():
    """Puts Aesara under Theano's name, and what Blocks needs beside it."""
    collections.Mapping = collections.abc.Mapping
    collections.MutableSequence = collections.abc.MutableSequence
    aesara._asarray = np.asarray
    sys.modules["theano"] = aesara
    sys.modules["theano.tensor"] = aesara.tensor
    sys.modules["theano.tensor.sharedvar"] = aesara.tensor.sharedvar
    _module("theano.tensor.shared_randomstreams", RandomStateSharedVariable=())
    _module("theano.gof")
    sys.modules["theano.gof.graph"] = aesara.graph.basic
    _module("picklable_itertools")
    _module("picklable_itertools.extras", equizip=lambda *x: zip(*x, strict=True))


def load_algorithms(checkout):
    for name in list(sys.modules):
        if name.split(".")[0] == "blocks":
            del sys.modules[name]
    _module("blocks").__path__ = [os.path.join(checkout, "blocks")]
    _module("blocks.graph", ComputationGraph=None)
    return importlib.import_module("blocks.algorithms")


def run(algorithms, steps, initial, gradients):
    """Returns the Python code of the step rule, and the values."""
    rules = [getattr(algorithms, cls)(**args) for cls, args in steps]
    texts = [tf_rows.call(cls, args) for cls, args in steps]
    if len(rules) == 1:
        step_rule, reference = rules[0], "blocks.algorithms." + texts[0]
    else:
        step_rule = algorithms.CompositeRule(rules)
        reference = f"blocks.algorithms.CompositeRule([{', '.join(texts)}])"

    params = [aesara.shared(x.copy(), name=f"p{i}") for i, x in enumerate(initial)]
    fed = [p.type() for p in params]
    pairs = collections.OrderedDict(zip(params, fed, strict=True))
    taken, updates = step_rule.compute_steps(pairs)
    updates = [(p, p - taken[p]) for p in params] + list(updates)
    step = aesara.function(fed, [], updates=updates)
    values = []
    for grads in gradients:
        step(*grads)
        values.append([np.asarray(p.get_value()).copy() for p in params])
    return reference, values


def main():
    # No compiler needed, and no rewrites that change the order of operations.
    aesara.config.mode = "FAST_COMPILE"
    aesara.config.cxx = ""
    prepare()
    initial, gradients = problem.problem()
    source = f"Blocks %s with aesara {aesara.__version__} (float64, CPU)"

    results = []
    new = load_algorithms(sys.argv[1])
    for name, rules, steps in ROWS:
        reference, values = run(new, steps, initial, gradients)
        results.append((name, reference, rules, values))
    axes_results = []
    axes_initial, axes_gradients = initial[2:], [g[2:] for g in gradients]
    for name, rules, steps in AXES_ROWS:
        reference, values = run(new, steps, axes_initial, axes_gradients)
        axes_results.append((name, reference, rules, values))
    old = load_algorithms(sys.argv[2])
    for name, rules, steps in OLD_ROWS:
        reference, values = run(old, steps, initial, gradients)
        reference += " (Blocks 3db89c00)"
        results.append((name, reference, rules, values))

    golden.write("blocks", source % "c69c2dc2", "generate_blocks.py", results)
    golden.write(
        "blocks_axes",
        source % "c69c2dc2",
        "generate_blocks.py",
        axes_results,
        problem.PARAMS[2:],
        axes_initial,
        axes_gradients,
    )


if __name__ == "__main__":
    main()
