"""Writes returnn.json: the golden rows computed by RETURNN's own optimizers."""

import importlib.metadata

import tensorflow as tf
from returnn.tf import updater

import golden
import problem
import tf_rows
from tf_rows import rule

v1 = tf.compat.v1

# Row name, rule, optimizer and its arguments.
ROWS = [
    (
        "returnn/sgd",
        rule("sgd", learning_rate=0.1),
        "CustomGradientDescentOptimizer",
        {"learning_rate": 0.1},
    ),
    (
        "returnn/normalized-sgd",
        rule("normalized_sgd", learning_rate=0.1),
        "NormalizedSGD",
        {"learning_rate": 0.1},
    ),
    (
        "returnn/neural-optimizer1",
        rule("neural_optimizer1", learning_rate=0.1),
        "NeuralOptimizer1",
        {"learning_rate": 0.1, "beta1": 0.9, "decrease_factor": 0.1},
    ),
    (
        "returnn/neural-optimizer1-factor-0.5",
        rule("neural_optimizer1", learning_rate=0.1, beta1=0.6, decrease_factor=0.5),
        "NeuralOptimizer1",
        {"learning_rate": 0.1, "beta1": 0.6, "decrease_factor": 0.5},
    ),
    (
        "returnn/grad-variance-scaled",
        rule("grad_variance_scaled", learning_rate=0.1),
        "GradVarianceScaledOptimizer",
        {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    ),
    (
        "returnn/grad-variance-scaled-eps-0.1",
        rule(
            "grad_variance_scaled",
            learning_rate=0.3,
            beta1=0.8,
            beta2=0.7,
            epsilon=0.1,
        ),
        "GradVarianceScaledOptimizer",
        {"learning_rate": 0.3, "beta1": 0.8, "beta2": 0.7, "epsilon": 0.1},
    ),
    (
        "returnn/nadam",
        rule("nadam", learning_rate=0.001, form="tensorflow"),
        "NadamOptimizer",
        {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    ),
    (
        "returnn/nadam-eps-1e-3",
        rule(
            "nadam",
            learning_rate=0.05,
            beta1=0.8,
            beta2=0.99,
            epsilon=1e-3,
            form="tensorflow",
        ),
        "NadamOptimizer",
        {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.99, "epsilon": 1e-3},
    ),
    (
        "returnn/adam",
        rule("adam", learning_rate=0.001, epsilon_hat=True),
        "CustomAdamOptimizer",
        {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    ),
    (
        "returnn/adam-eps-1e-3",
        rule(
            "adam",
            learning_rate=0.05,
            beta1=0.8,
            beta2=0.99,
            epsilon=1e-3,
            epsilon_hat=True,
        ),
        "CustomAdamOptimizer",
        {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.99, "epsilon": 1e-3},
    ),
    (
        "returnn/amsgrad",
        rule("amsgrad", learning_rate=0.01, epsilon=1e-16),
        "AMSGradOptimizer",
        {
            "learning_rate": 0.01,
            "decay": False,
            "beta1": 0.9,
            "beta2": 0.99,
            "epsilon": 1e-16,
        },
    ),
    (
        "returnn/amsgrad-decay",
        rule("amsgrad", learning_rate=0.1, decay=True, epsilon=1e-16),
        "AMSGradOptimizer",
        {
            "learning_rate": 0.1,
            "decay": True,
            "beta1": 0.9,
            "beta2": 0.99,
            "epsilon": 1e-16,
        },
    ),
    (
        "returnn/amsgrad-eps-1e-2",
        rule("amsgrad", learning_rate=0.05, beta1=0.5, beta2=0.8, epsilon=1e-2),
        "AMSGradOptimizer",
        {
            "learning_rate": 0.05,
            "decay": False,
            "beta1": 0.5,
            "beta2": 0.8,
            "epsilon": 1e-2,
        },
    ),
]


def make_optimizer(cls, args, variables):
    """Returns the optimizer, with all of its numbers in float64."""
    exact = {
        k: tf.constant(v, tf.float64) if type(v) is float else v
        for k, v in args.items()
        if k != "decrease_factor"
    }
    if "decrease_factor" in args:
        # Used as a Python number, next to a float64 tensor.
        exact["decrease_factor"] = args["decrease_factor"]
    if cls != "AMSGradOptimizer":
        return getattr(updater, cls)(**exact)
    # Needs to be told the variables, and makes float32 state for them.
    optimizer = updater.AMSGradOptimizer(**exact, var_list=variables)
    optimizer.t = tf.Variable(0.0, dtype=tf.float64, trainable=False)
    for state in (optimizer.m, optimizer.v, optimizer.v_hat):
        for v in variables:
            zero = tf.zeros(v.shape, tf.float64)
            state[v] = tf.Variable(zero, trainable=False)
    return optimizer


def run(cls, args):
    initial, gradients = problem.problem()
    with tf.Graph().as_default(), v1.Session() as session:
        variables = [
            v1.get_variable(f"p{i}", initializer=tf.constant(x, tf.float64))
            for i, x in enumerate(initial)
        ]
        fed = [v1.placeholder(tf.float64, x.shape) for x in initial]
        optimizer = make_optimizer(cls, args, variables)
        update = optimizer.apply_gradients(list(zip(fed, variables, strict=True)))
        session.run(v1.global_variables_initializer())
        values = []
        for grads in gradients:
            session.run(update, dict(zip(fed, grads, strict=True)))
            values.append(session.run(variables))
    return values


def main():
    v1.disable_v2_behavior()
    v1.enable_resource_variables()
    results = []
    for name, r, cls, args in ROWS:
        reference = tf_rows.call("returnn.tf.updater." + cls, args)
        if cls == "AMSGradOptimizer":
            reference += " (var_list given, state in float64)"
        results.append((name, reference, [r], run(cls, args)))
    version = importlib.metadata.version("returnn")
    source = f"returnn {version} with tensorflow {tf.__version__} (float64, CPU)"
    golden.write("returnn", source, "generate_returnn.py", results)


if __name__ == "__main__":
    main()
