"""Writes addons.json and addons_nuclear.json: tensorflow_addons' golden rows.

The nuclear form of ConditionalGradient has a problem of its own: it fails for
tensors of rank 3 and more, and takes a singular vector of whatever sign and
direction the SVD returns where the gradient is zero.
"""

import warnings

warnings.filterwarnings("ignore", module="tensorflow_addons")

import tensorflow as tf  # noqa: E402
import tensorflow_addons as tfa  # noqa: E402

import adabelief_rows  # noqa: E402
import problem  # noqa: E402
import golden  # noqa: E402
import tf_rows  # noqa: E402
from tf_rows import rule  # noqa: E402

_ADAM = {"learning_rate": 0.001, "beta_1": 0.9, "beta_2": 0.999}

# Row name, rule, optimizer and its arguments.
ROWS = [
    (
        "addons/radam",
        rule("radam", epsilon=1e-7),
        "RectifiedAdam",
        {**_ADAM, "epsilon": 1e-7},
    ),
    (
        "addons/radam-wd-0.01",
        rule(
            "radam",
            learning_rate=0.05,
            beta1=0.8,
            beta2=0.99,
            epsilon=1e-3,
            weight_decay=0.01,
        ),
        "RectifiedAdam",
        {
            "learning_rate": 0.05,
            "beta_1": 0.8,
            "beta_2": 0.99,
            "epsilon": 1e-3,
            "weight_decay": 0.01,
        },
    ),
    (
        "addons/radam-warmup",
        rule(
            "radam",
            learning_rate=0.02,
            epsilon=1e-7,
            total_steps=20,
            warmup_proportion=0.3,
            min_learning_rate=1e-5,
        ),
        "RectifiedAdam",
        {
            "learning_rate": 0.02,
            "beta_1": 0.9,
            "beta_2": 0.999,
            "epsilon": 1e-7,
            "total_steps": 20,
            "warmup_proportion": 0.3,
            "min_lr": 1e-5,
        },
    ),
    (
        "addons/radam-warmup-wd-0.1",
        rule(
            "radam",
            learning_rate=0.02,
            epsilon=1e-7,
            weight_decay=0.1,
            total_steps=20,
        ),
        "RectifiedAdam",
        {
            "learning_rate": 0.02,
            "beta_1": 0.9,
            "beta_2": 0.999,
            "epsilon": 1e-7,
            "weight_decay": 0.1,
            "total_steps": 20,
            "warmup_proportion": 0.1,
            "min_lr": 0.0,
        },
    ),
    (
        "addons/radam-amsgrad",
        rule("radam", learning_rate=0.02, beta2=0.9, epsilon=1e-7, amsgrad=True),
        "RectifiedAdam",
        {
            "learning_rate": 0.02,
            "beta_1": 0.9,
            "beta_2": 0.9,
            "epsilon": 1e-7,
            "amsgrad": True,
        },
    ),
    (
        "addons/radam-threshold-8",
        rule("radam", learning_rate=0.02, epsilon=1e-7, sma_threshold=8.0),
        "RectifiedAdam",
        {
            "learning_rate": 0.02,
            "beta_1": 0.9,
            "beta_2": 0.999,
            "epsilon": 1e-7,
            "sma_threshold": 8.0,
        },
    ),
    (
        "addons/lamb",
        rule("lamb", learning_rate=0.01, epsilon=1e-6),
        "LAMB",
        {"learning_rate": 0.01, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6},
    ),
    (
        "addons/lamb-wd-0.01",
        rule(
            "lamb",
            learning_rate=0.01,
            beta1=0.8,
            beta2=0.99,
            epsilon=1e-3,
            weight_decay=0.01,
        ),
        "LAMB",
        {
            "learning_rate": 0.01,
            "beta_1": 0.8,
            "beta_2": 0.99,
            "epsilon": 1e-3,
            "weight_decay": 0.01,
        },
    ),
    (
        "addons/novograd",
        rule("novograd", learning_rate=0.01, epsilon=1e-7),
        "NovoGrad",
        {"learning_rate": 0.01, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7},
    ),
    (
        "addons/novograd-wd-0.1",
        rule(
            "novograd",
            learning_rate=0.01,
            beta2=0.9,
            epsilon=1e-3,
            weight_decay=0.1,
        ),
        "NovoGrad",
        {
            "learning_rate": 0.01,
            "beta_1": 0.9,
            "beta_2": 0.9,
            "epsilon": 1e-3,
            "weight_decay": 0.1,
        },
    ),
    (
        "addons/novograd-grad-averaging",
        rule(
            "novograd",
            learning_rate=0.02,
            beta1=0.8,
            beta2=0.5,
            epsilon=1e-7,
            weight_decay=0.01,
            grad_averaging=True,
        ),
        "NovoGrad",
        {
            "learning_rate": 0.02,
            "beta_1": 0.8,
            "beta_2": 0.5,
            "epsilon": 1e-7,
            "weight_decay": 0.01,
            "grad_averaging": True,
        },
    ),
    (
        "addons/novograd-amsgrad",
        rule("novograd", learning_rate=0.01, beta2=0.5, epsilon=1e-7, amsgrad=True),
        "NovoGrad",
        {
            "learning_rate": 0.01,
            "beta_1": 0.9,
            "beta_2": 0.5,
            "epsilon": 1e-7,
            "amsgrad": True,
        },
    ),
    (
        "addons/yogi",
        rule("yogi", learning_rate=0.01),
        "Yogi",
        {
            "learning_rate": 0.01,
            "beta1": 0.9,
            "beta2": 0.999,
            "epsilon": 1e-3,
            "initial_accumulator_value": 1e-6,
            "activation": "sign",
        },
    ),
    (
        "addons/yogi-l1-l2",
        rule(
            "yogi",
            learning_rate=0.05,
            beta2=0.9,
            l1=0.01,
            l2=0.02,
            initial_accumulator_value=0.1,
        ),
        "Yogi",
        {
            "learning_rate": 0.05,
            "beta1": 0.9,
            "beta2": 0.9,
            "epsilon": 1e-3,
            "l1_regularization_strength": 0.01,
            "l2_regularization_strength": 0.02,
            "initial_accumulator_value": 0.1,
            "activation": "sign",
        },
    ),
    (
        "addons/yogi-l1",
        rule("yogi", learning_rate=0.05, beta2=0.9, l1=0.2),
        "Yogi",
        {
            "learning_rate": 0.05,
            "beta1": 0.9,
            "beta2": 0.9,
            "epsilon": 1e-3,
            "l1_regularization_strength": 0.2,
            "initial_accumulator_value": 1e-6,
            "activation": "sign",
        },
    ),
    (
        "addons/yogi-l2",
        rule("yogi", learning_rate=0.05, beta2=0.9, l2=0.2),
        "Yogi",
        {
            "learning_rate": 0.05,
            "beta1": 0.9,
            "beta2": 0.9,
            "epsilon": 1e-3,
            "l2_regularization_strength": 0.2,
            "initial_accumulator_value": 1e-6,
            "activation": "sign",
        },
    ),
    (
        "addons/yogi-tanh",
        rule("yogi", learning_rate=0.02, beta2=0.9, activation="tanh"),
        "Yogi",
        {
            "learning_rate": 0.02,
            "beta1": 0.9,
            "beta2": 0.9,
            "epsilon": 1e-3,
            "initial_accumulator_value": 1e-6,
            "activation": "tanh",
        },
    ),
    (
        "addons/yogi-beta1-0",
        rule("yogi", learning_rate=0.01, beta1=0.0, beta2=0.9),
        "Yogi",
        {
            "learning_rate": 0.01,
            "beta1": 0.0,
            "beta2": 0.9,
            "epsilon": 1e-3,
            "initial_accumulator_value": 1e-6,
            "activation": "sign",
        },
    ),
    ("addons/cocob", rule("cocob", alpha=100.0), "COCOB", {"alpha": 100.0}),
    ("addons/cocob-alpha-20", rule("cocob", alpha=20.0), "COCOB", {"alpha": 20.0}),
    ("addons/cocob-alpha-2", rule("cocob", alpha=2.0), "COCOB", {"alpha": 2.0}),
    (
        "addons/conditional-gradient",
        rule("conditional_gradient", **{"learning_rate": 0.9, "lambda": 0.1}),
        "ConditionalGradient",
        {"learning_rate": 0.9, "lambda_": 0.1, "epsilon": 1e-7, "ord": "fro"},
    ),
    (
        "addons/conditional-gradient-eps-0.1",
        rule(
            "conditional_gradient",
            **{"learning_rate": 0.7, "lambda": 2.0, "epsilon": 0.1},
        ),
        "ConditionalGradient",
        {"learning_rate": 0.7, "lambda_": 2.0, "epsilon": 0.1, "ord": "fro"},
    ),
    (
        "addons/proximal-adagrad",
        rule("proximal_adagrad", learning_rate=0.1),
        "ProximalAdagrad",
        {"learning_rate": 0.1, "initial_accumulator_value": 0.1},
    ),
    (
        "addons/proximal-adagrad-l1-l2",
        rule(
            "proximal_adagrad",
            learning_rate=0.1,
            initial_accumulator_value=0.2,
            l1=0.05,
            l2=0.2,
        ),
        "ProximalAdagrad",
        {
            "learning_rate": 0.1,
            "initial_accumulator_value": 0.2,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.2,
        },
    ),
    (
        "addons/sgdw",
        rule("sgdw", learning_rate=0.05, weight_decay=0.01),
        "SGDW",
        {"weight_decay": 0.01, "learning_rate": 0.05},
    ),
    (
        "addons/sgdw-momentum",
        rule("sgdw", learning_rate=0.05, momentum=0.9, weight_decay=0.01),
        "SGDW",
        {"weight_decay": 0.01, "learning_rate": 0.05, "momentum": 0.9},
    ),
    (
        "addons/sgdw-nesterov",
        rule(
            "sgdw", learning_rate=0.05, momentum=0.9, nesterov=True, weight_decay=0.01
        ),
        "SGDW",
        {
            "weight_decay": 0.01,
            "learning_rate": 0.05,
            "momentum": 0.9,
            "nesterov": True,
        },
    ),
    (
        "addons/adamw",
        rule(
            "adamw",
            epsilon=1e-7,
            epsilon_hat=True,
            weight_decay=0.01,
            rate_independent=True,
        ),
        "AdamW",
        {"weight_decay": 0.01, **_ADAM, "epsilon": 1e-7},
    ),
    (
        "addons/adamw-amsgrad",
        rule(
            "adamw",
            learning_rate=0.02,
            beta2=0.9,
            epsilon=1e-3,
            epsilon_hat=True,
            amsgrad=True,
            weight_decay=0.01,
            rate_independent=True,
        ),
        "AdamW",
        {
            "weight_decay": 0.01,
            "learning_rate": 0.02,
            "beta_1": 0.9,
            "beta_2": 0.9,
            "epsilon": 1e-3,
            "amsgrad": True,
        },
    ),
]

NUCLEAR = [
    (
        "addons/conditional-gradient-nuclear",
        rule(
            "conditional_gradient",
            **{"learning_rate": 0.9, "lambda": 0.1, "ord": "nuclear"},
        ),
        "ConditionalGradient",
        {"learning_rate": 0.9, "lambda_": 0.1, "epsilon": 1e-7, "ord": "nuclear"},
    ),
    (
        "addons/conditional-gradient-nuclear-lambda-2",
        rule(
            "conditional_gradient",
            **{"learning_rate": 0.7, "lambda": 2.0, "ord": "nuclear"},
        ),
        "ConditionalGradient",
        {"learning_rate": 0.7, "lambda_": 2.0, "epsilon": 1e-7, "ord": "nuclear"},
    ),
]


def run(cls, args, initial, gradients):
    optimizer = tf_rows.exact_hypers(getattr(tfa.optimizers, cls)(**args))
    values = tf_rows.run_eager(optimizer, initial, gradients)
    return tf_rows.call("tfa.optimizers." + cls, args), values


SOURCE = (
    f"tensorflow_addons {tfa.__version__} with tensorflow {tf.__version__}"
    " (float64, CPU)"
)


def main():
    rows = ROWS + [
        (name, r, "AdaBelief", args) for name, r, args in adabelief_rows.rows("addons")
    ]
    initial, gradients = problem.problem()
    results = []
    for name, r, cls, args in rows:
        reference, values = run(cls, args, initial, gradients)
        results.append((name, reference, [r], values))
    golden.write("addons", SOURCE, "generate_addons.py", results)

    # The first three parameters: a scalar, a vector and a matrix.
    params = problem.PARAMS[:3]
    initial = initial[:3]
    gradients = [g[:3] for g in gradients]
    results = []
    for name, r, cls, args in NUCLEAR:
        reference, values = run(cls, args, initial, gradients)
        results.append((name, reference, [r], values))
    golden.write(
        "addons_nuclear",
        SOURCE,
        "generate_addons.py",
        results,
        params,
        initial,
        gradients,
    )


if __name__ == "__main__":
    main()
