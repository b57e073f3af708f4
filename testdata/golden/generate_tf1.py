"""Writes tf1.json: the golden rows computed by tf.compat.v1.train."""

import inspect

import tensorflow as tf

import golden
import problem
import tf_rows
from tf_rows import rule

# Row name, rule, optimizer and its arguments.
ROWS = [
    (
        "tf1/sgd",
        rule("sgd", learning_rate=0.1),
        "GradientDescentOptimizer",
        {"learning_rate": 0.1},
    ),
    (
        "tf1/momentum",
        rule("momentum", learning_rate=0.05, momentum=0.9),
        "MomentumOptimizer",
        {"learning_rate": 0.05, "momentum": 0.9},
    ),
    (
        "tf1/nesterov",
        rule("nesterov", learning_rate=0.05, momentum=0.9),
        "MomentumOptimizer",
        {"learning_rate": 0.05, "momentum": 0.9, "use_nesterov": True},
    ),
    (
        "tf1/rmsprop",
        rule(
            "rmsprop",
            learning_rate=0.01,
            rho=0.9,
            epsilon=1e-10,
            epsilon_inside=True,
            initial_value=1.0,
        ),
        "RMSPropOptimizer",
        {"learning_rate": 0.01, "decay": 0.9, "momentum": 0.0, "epsilon": 1e-10},
    ),
    (
        "tf1/rmsprop-momentum",
        rule(
            "rmsprop",
            learning_rate=0.01,
            rho=0.8,
            momentum=0.9,
            epsilon=1e-3,
            epsilon_inside=True,
            initial_value=1.0,
        ),
        "RMSPropOptimizer",
        {"learning_rate": 0.01, "decay": 0.8, "momentum": 0.9, "epsilon": 1e-3},
    ),
    (
        "tf1/rmsprop-centered",
        rule(
            "rmsprop",
            learning_rate=0.01,
            rho=0.9,
            momentum=0.9,
            epsilon=1e-10,
            centered=True,
            epsilon_inside=True,
            initial_value=1.0,
        ),
        "RMSPropOptimizer",
        {
            "learning_rate": 0.01,
            "decay": 0.9,
            "momentum": 0.9,
            "epsilon": 1e-10,
            "centered": True,
        },
    ),
    (
        "tf1/adagrad",
        rule("adagrad", learning_rate=0.1, initial_accumulator_value=0.1, epsilon=0.0),
        "AdagradOptimizer",
        {"learning_rate": 0.1, "initial_accumulator_value": 0.1},
    ),
    (
        "tf1/adadelta",
        rule("adadelta", learning_rate=0.5, rho=0.95, epsilon=1e-8),
        "AdadeltaOptimizer",
        {"learning_rate": 0.5, "rho": 0.95, "epsilon": 1e-8},
    ),
    (
        "tf1/adadelta-eps-1e-3",
        rule("adadelta", learning_rate=1.0, rho=0.9, epsilon=1e-3),
        "AdadeltaOptimizer",
        {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-3},
    ),
    (
        "tf1/adam",
        rule("adam", learning_rate=0.001, epsilon=1e-8, epsilon_hat=True),
        "AdamOptimizer",
        {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    ),
    (
        "tf1/adam-eps-1e-3",
        rule(
            "adam",
            learning_rate=0.01,
            beta1=0.8,
            beta2=0.99,
            epsilon=1e-3,
            epsilon_hat=True,
        ),
        "AdamOptimizer",
        {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.99, "epsilon": 1e-3},
    ),
    (
        "tf1/ftrl",
        rule("ftrl", learning_rate=0.1),
        "FtrlOptimizer",
        {
            "learning_rate": 0.1,
            "learning_rate_power": -0.5,
            "initial_accumulator_value": 0.1,
        },
    ),
    (
        "tf1/ftrl-l1-l2",
        rule("ftrl", learning_rate=0.1, l1=0.3, l2=0.2),
        "FtrlOptimizer",
        {
            "learning_rate": 0.1,
            "learning_rate_power": -0.5,
            "initial_accumulator_value": 0.1,
            "l1_regularization_strength": 0.3,
            "l2_regularization_strength": 0.2,
        },
    ),
    (
        "tf1/ftrl-shrinkage-beta-power",
        rule(
            "ftrl",
            learning_rate=0.1,
            learning_rate_power=-0.7,
            initial_accumulator_value=0.5,
            l1=0.1,
            l2=0.02,
            l2_shrinkage=0.05,
            beta=0.3,
        ),
        "FtrlOptimizer",
        {
            "learning_rate": 0.1,
            "learning_rate_power": -0.7,
            "initial_accumulator_value": 0.5,
            "l1_regularization_strength": 0.1,
            "l2_regularization_strength": 0.02,
            "l2_shrinkage_regularization_strength": 0.05,
            "beta": 0.3,
        },
    ),
    (
        "tf1/ftrl-shrinkage",
        rule("ftrl", learning_rate=0.1, l2_shrinkage=0.05),
        "FtrlOptimizer",
        {
            "learning_rate": 0.1,
            "learning_rate_power": -0.5,
            "initial_accumulator_value": 0.1,
            "l2_shrinkage_regularization_strength": 0.05,
        },
    ),
    (
        "tf1/proximal-gradient-descent",
        rule("proximal_gradient_descent", learning_rate=0.1, l1=0.05, l2=0.2),
        "ProximalGradientDescentOptimizer",
        {
            "learning_rate": 0.1,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.2,
        },
    ),
    (
        "tf1/proximal-gradient-descent-l2",
        rule("proximal_gradient_descent", learning_rate=0.1, l2=0.2),
        "ProximalGradientDescentOptimizer",
        {"learning_rate": 0.1, "l2_regularization_strength": 0.2},
    ),
    (
        "tf1/proximal-adagrad",
        rule("proximal_adagrad", learning_rate=0.1, l1=0.05, l2=0.2),
        "ProximalAdagradOptimizer",
        {
            "learning_rate": 0.1,
            "initial_accumulator_value": 0.1,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.2,
        },
    ),
    (
        "tf1/proximal-adagrad-l2",
        rule(
            "proximal_adagrad", learning_rate=0.1, initial_accumulator_value=0.5, l2=0.2
        ),
        "ProximalAdagradOptimizer",
        {
            "learning_rate": 0.1,
            "initial_accumulator_value": 0.5,
            "l2_regularization_strength": 0.2,
        },
    ),
    (
        "tf1/adagrad-da",
        rule("adagrad_da", learning_rate=0.1),
        "AdagradDAOptimizer",
        {"learning_rate": 0.1, "initial_gradient_squared_accumulator_value": 0.1},
    ),
    (
        "tf1/adagrad-da-l1-l2",
        rule("adagrad_da", learning_rate=0.1, l1=0.02, l2=0.3),
        "AdagradDAOptimizer",
        {
            "learning_rate": 0.1,
            "initial_gradient_squared_accumulator_value": 0.1,
            "l1_regularization_strength": 0.02,
            "l2_regularization_strength": 0.3,
        },
    ),
]

# These must stay Python floats; they only fill a float64 slot.
PLAIN = ("initial_accumulator_value", "initial_gradient_squared_accumulator_value")


def run(cls, args):
    initial, gradients = problem.problem()
    make = getattr(tf.compat.v1.train, cls)
    # Defaults included, since they would become float32 numbers too.
    defaults = {
        k: p.default
        for k, p in inspect.signature(make).parameters.items()
        if isinstance(p.default, float)
    }
    exact = {
        k: tf.constant(v, tf.float64) if isinstance(v, float) and k not in PLAIN else v
        for k, v in {**defaults, **args}.items()
    }
    apply_args = {}
    if cls == "AdagradDAOptimizer":
        step = tf.Variable(0, dtype=tf.int64)
        exact["global_step"] = step
        apply_args["global_step"] = step
    return tf_rows.run_eager(make(**exact), initial, gradients, **apply_args)


SOURCE = f"tensorflow {tf.__version__}, tf.compat.v1.train (float64, CPU)"


def main():
    results = []
    for name, r, cls, args in ROWS:
        reference = tf_rows.call("tf.compat.v1.train." + cls, args)
        results.append((name, reference, [r], run(cls, args)))
    golden.write("tf1", SOURCE, "generate_tf1.py", results)


if __name__ == "__main__":
    main()
