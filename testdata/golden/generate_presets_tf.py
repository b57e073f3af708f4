"""Writes presets_tf1.json, presets_keras2.json, presets_addons.json and
presets_adabelief_tf.json: the presets that are named after these libraries.

As generate_presets.py. Options without a default in the library are given.
"""

import generate_adabelief_tf  # noqa: I001

import tensorflow as tf

import generate_addons
import generate_keras2
import generate_tf1
import golden
import problem
import tf_rows

LR = {"learning_rate": 0.01}
MOMENTUM = LR | {"momentum": 0.9}
WD = {"weight_decay": 0.01}
EPS = {"epsilon": 0.01}
LR_1 = {"learning_rate": 1.0}
L1_L2 = {"l1": 0.05, "l2": 0.2}

# The names of options in the libraries, where they are others.
NAMES = {"l1": "l1_regularization_strength", "l2": "l2_regularization_strength"}
TF1_NAMES = NAMES | {"nesterov": "use_nesterov"}
ADDONS_NAMES = NAMES | {"lambda": "lambda_"}

# Preset, the name of the optimizer in the library, options, row name.
TF1 = [
    ("adadelta", "AdadeltaOptimizer", {}, "defaults"),
    ("adadelta", "AdadeltaOptimizer", EPS, "eps-0.01"),
    ("adagrad", "AdagradOptimizer", LR, "defaults"),
    ("adagradda", "AdagradDAOptimizer", LR, "defaults"),
    ("adagradda", "AdagradDAOptimizer", LR | L1_L2, "l1-l2"),
    ("adam", "AdamOptimizer", {}, "defaults"),
    ("adam", "AdamOptimizer", EPS, "eps-0.01"),
    ("ftrl", "FtrlOptimizer", LR, "defaults"),
    ("ftrl", "FtrlOptimizer", LR | L1_L2, "l1-l2"),
    ("gradientdescent", "GradientDescentOptimizer", LR, "defaults"),
    ("momentum", "MomentumOptimizer", MOMENTUM, "defaults"),
    ("momentum", "MomentumOptimizer", MOMENTUM | {"nesterov": True}, "nesterov"),
    ("proximaladagrad", "ProximalAdagradOptimizer", LR, "defaults"),
    ("proximaladagrad", "ProximalAdagradOptimizer", LR | L1_L2, "l1-l2"),
    ("proximalgradientdescent", "ProximalGradientDescentOptimizer", LR, "defaults"),
    (
        "proximalgradientdescent",
        "ProximalGradientDescentOptimizer",
        LR | L1_L2,
        "l1-l2",
    ),
    ("rmsprop", "RMSPropOptimizer", LR, "defaults"),
    ("rmsprop", "RMSPropOptimizer", LR | EPS, "eps-0.01"),
    ("rmsprop", "RMSPropOptimizer", LR_1, "lr-1"),
    ("rmsprop", "RMSPropOptimizer", MOMENTUM | {"centered": True}, "centered-mu-0.9"),
]

KERAS2 = [
    ("adamax", "Adamax", {}, "defaults"),
    ("adamax", "Adamax", EPS, "eps-0.01"),
    ("nadam", "Nadam", {}, "defaults"),
    ("nadam", "Nadam", EPS, "eps-0.01"),
    ("sgd", "SGD", {}, "defaults"),
    ("sgd", "SGD", {"momentum": 0.9}, "mu-0.9"),
    ("sgd", "SGD", {"momentum": 0.9, "nesterov": True}, "nesterov-mu-0.9"),
]

ADDONS = [
    ("adabelief", "AdaBelief", {}, "defaults"),
    ("adabelief", "AdaBelief", EPS, "eps-0.01"),
    ("adabelief", "AdaBelief", WD, "wd-0.01"),
    ("adamw", "AdamW", WD, "defaults"),
    ("adamw", "AdamW", WD | EPS, "eps-0.01"),
    ("adamw", "AdamW", WD | {"amsgrad": True}, "amsgrad"),
    ("cocob", "COCOB", {}, "defaults"),
    ("conditionalgradient", "ConditionalGradient", LR, "defaults"),
    ("conditionalgradient", "ConditionalGradient", LR | EPS, "eps-0.01"),
    ("conditionalgradient", "ConditionalGradient", LR | {"lambda": 1.0}, "lambda-1"),
    ("lamb", "LAMB", {}, "defaults"),
    ("lamb", "LAMB", EPS, "eps-0.01"),
    ("lamb", "LAMB", WD, "wd-0.01"),
    ("lazyadam", "LazyAdam", {}, "defaults"),
    ("lazyadam", "LazyAdam", EPS, "eps-0.01"),
    ("novograd", "NovoGrad", {}, "defaults"),
    ("novograd", "NovoGrad", EPS, "eps-0.01"),
    ("novograd", "NovoGrad", WD, "wd-0.01"),
    ("proximaladagrad", "ProximalAdagrad", {}, "defaults"),
    ("proximaladagrad", "ProximalAdagrad", L1_L2, "l1-l2"),
    ("rectifiedadam", "RectifiedAdam", {}, "defaults"),
    ("rectifiedadam", "RectifiedAdam", EPS, "eps-0.01"),
    ("rectifiedadam", "RectifiedAdam", LR_1, "lr-1"),
    ("rectifiedadam", "RectifiedAdam", WD, "wd-0.01"),
    ("sgdw", "SGDW", WD, "defaults"),
    ("sgdw", "SGDW", WD | {"momentum": 0.9, "nesterov": True}, "nesterov-mu-0.9"),
    ("yogi", "Yogi", {}, "defaults"),
    ("yogi", "Yogi", EPS, "eps-0.01"),
    ("yogi", "Yogi", L1_L2, "l1-l2"),
]

# The Keras optimizer of adabelief-tf.
ADABELIEF = [
    ("adabelief", "AdaBeliefOptimizer", {}, "defaults"),
    ("adabelief", "AdaBeliefOptimizer", EPS, "eps-0.01"),
    ("adabelief", "AdaBeliefOptimizer", WD, "wd-0.01"),
]


def write(name, source, family, module, names, presets, run):
    results = []
    for preset, cls, options, suffix in presets:
        rule = {"name": f"{family}/{preset}", "options": options}
        args = {names.get(k, k): v for k, v in options.items()}
        reference = tf_rows.call(f"{module}.{cls}", args)
        row = f"{rule['name']}/{suffix}"
        results.append((row, reference, [rule], run(cls, args)))
    golden.write(name, source, "generate_presets_tf.py", results)


def run_keras2(cls, args):
    optimizer = getattr(tf.keras.optimizers.legacy, cls)(**args)
    return tf_rows.run_eager(tf_rows.exact_hypers(optimizer), *problem.problem())


def run_addons(cls, args):
    _, values = generate_addons.run(cls, args, *problem.problem())
    return values


def run_adabelief(cls, args):
    optimizer = getattr(generate_adabelief_tf, cls)(**args, print_change_log=False)
    return tf_rows.run_eager(tf_rows.exact_hypers(optimizer), *problem.problem())


def main():
    write(
        "presets_tf1",
        generate_tf1.SOURCE,
        "tf1",
        "tf.compat.v1.train",
        TF1_NAMES,
        TF1,
        generate_tf1.run,
    )
    write(
        "presets_keras2",
        generate_keras2.SOURCE,
        "keras2",
        "tf.keras.optimizers.legacy",
        {},
        KERAS2,
        run_keras2,
    )
    write(
        "presets_addons",
        generate_addons.SOURCE,
        "addons",
        "tfa.optimizers",
        ADDONS_NAMES,
        ADDONS,
        run_addons,
    )
    write(
        "presets_adabelief_tf",
        generate_adabelief_tf.SOURCE,
        "keras",
        "adabelief_tf",
        {},
        ADABELIEF,
        run_adabelief,
    )


if __name__ == "__main__":
    main()
