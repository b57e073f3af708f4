"""The rows of the golden files of torch, optax, Keras and their kin.

A row is one optimizer setup. Its rules are applied in order: a row with two
rules first clips the gradients and then takes the step. Rule and option names
are the names this library uses; all options are written out.
"""

import golden

TOLERANCE = {"float64": 1e-12, "float32": 2e-6}


def _sgd(lr):
    return {"name": "sgd", "options": {"learning_rate": lr}}


def _momentum(lr, mu):
    return {"name": "momentum", "options": {"learning_rate": lr, "momentum": mu}}


def _nesterov(lr, mu):
    return {"name": "nesterov", "options": {"learning_rate": lr, "momentum": mu}}


def _adam(lr, beta1, beta2, eps):
    return {
        "name": "adam",
        "options": {
            "learning_rate": lr,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": eps,
        },
    }


def _adamw(lr, beta1, beta2, eps, wd):
    rule = _adam(lr, beta1, beta2, eps)
    rule["name"] = "adamw"
    rule["options"]["weight_decay"] = wd
    return rule


def _clip(max_norm):
    return {"name": "clip_by_global_norm", "options": {"max_norm": max_norm}}


def _clip_value(max_value):
    return {"name": "clip_by_value", "options": {"max_value": max_value}}


def _clip_each(max_norm):
    return {"name": "clip_by_norm", "options": {"max_norm": max_norm}}


# Name, rules, and the files the row belongs to.
#
# The rows that clip by norm are not in torch.json: torch.nn.utils.clip_grad_norm_ adds
# 1e-6 to the norm. The Adam rows are not in keras.json: Keras adds epsilon
# before the bias correction of the second moment, which is another rule.
_ROWS = [
    ("sgd/lr-0.1", [_sgd(0.1)], "torch optax"),
    ("sgd/lr-0.003", [_sgd(0.003)], "torch optax"),
    ("momentum/mu-0.9", [_momentum(0.05, 0.9)], "torch optax"),
    ("momentum/mu-0.5", [_momentum(0.01, 0.5)], "torch optax"),
    ("nesterov/mu-0.9", [_nesterov(0.05, 0.9)], "torch optax"),
    ("nesterov/mu-0.5", [_nesterov(0.01, 0.5)], "torch optax"),
    ("adam/defaults", [_adam(0.001, 0.9, 0.999, 1e-8)], "torch optax"),
    ("adam/eps-1e-3", [_adam(0.01, 0.8, 0.99, 1e-3)], "torch optax"),
    ("adamw/wd-0.01", [_adamw(0.001, 0.9, 0.999, 1e-8, 0.01)], "torch optax"),
    ("adamw/wd-0.1", [_adamw(0.05, 0.9, 0.95, 1e-6, 0.1)], "torch optax"),
    ("clip-1.0/sgd", [_clip(1.0), _sgd(0.1)], "optax keras"),
    ("clip-1.0/momentum", [_clip(1.0), _momentum(0.05, 0.9)], "optax keras"),
    ("clip-value-0.1/sgd", [_clip_value(0.1), _sgd(0.1)], "torch optax keras"),
    (
        "clip-value-0.5/momentum",
        [_clip_value(0.5), _momentum(0.05, 0.9)],
        "torch optax keras",
    ),
    ("clip-norm-0.5/sgd", [_clip_each(0.5), _sgd(0.1)], "keras"),
    ("clip-norm-0.1/momentum", [_clip_each(0.1), _momentum(0.05, 0.9)], "keras"),
    ("clip-0.5/adam", [_clip(0.5), _adam(0.01, 0.9, 0.999, 1e-8)], "optax"),
]


def _rule(name, /, lr=None, betas=None, eps=None, **options):
    """A rule with all its options: the given ones, else defaults."""
    if lr is not None:
        options["learning_rate"] = lr
    if betas is not None:
        options["beta1"], options["beta2"] = betas
    if eps is not None:
        options["epsilon"] = eps
    unknown = set(options) - set(golden.OPTIONS[name])
    if unknown:
        raise ValueError(f"{name} has no option {unknown}")
    return {"name": name, "options": golden.OPTIONS[name] | options}


def _row(name, files, lr=None, betas=None, eps=None, **options):
    """A row with one rule, whose name is the part of the row name before "/"."""
    rule = _rule(name.split("/")[0], lr, betas, eps, **options)
    return name, [rule], files


# Written with golden.WIDER_TOLERANCE. A row is in more than one file if the libraries
# compute the same formula up to rounding.
#
# adabelief.json is the package adabelief-pytorch. Its rows have no amsgrad with
# rectify: the package then ignores the maximum.
_MORE_ROWS = [
    _row("momentum/dampening-0.1", "torch pytorch_optimizer", 0.05, dampening=0.1),
    _row("momentum/rate-inside", "keras optax", 0.05, rate_inside=True),
    _row("nesterov/rate-inside", "keras optax", 0.05, momentum=0.8, rate_inside=True),
    _row("sgdw/mu-0", "optax pytorch_optimizer", 0.05, weight_decay=0.01),
    _row(
        "sgdw/mu-0.9",
        "optax pytorch_optimizer",
        0.05,
        momentum=0.9,
        weight_decay=0.001,
    ),
    _row(
        "sgdw/nesterov",
        "optax pytorch_optimizer",
        0.01,
        momentum=0.9,
        nesterov=True,
        weight_decay=0.02,
    ),
    # RMSprop. torch takes the root first and has the rate outside the momentum.
    _row("rmsprop/rho-0.99", "torch optax", 0.01, rho=0.99),
    _row("rmsprop/eps-1e-3", "torch optax", eps=1e-3),
    _row(
        "rmsprop/momentum-rate-outside",
        "torch optax",
        0.01,
        eps=1e-4,
        rho=0.99,
        momentum=0.9,
        rate_outside=True,
    ),
    _row("rmsprop/centered", "torch optax", 0.005, eps=1e-4, centered=True),
    _row(
        "rmsprop/centered-momentum-rate-outside",
        "torch optax",
        0.01,
        rho=0.99,
        momentum=0.5,
        centered=True,
        rate_outside=True,
    ),
    _row("rmsprop/momentum", "optax", eps=1e-4, momentum=0.9),
    _row("rmsprop/eps-inside", "keras optax", eps=1e-7, epsilon_inside=True),
    _row(
        "rmsprop/eps-inside-momentum",
        "keras optax",
        0.005,
        eps=1e-4,
        rho=0.8,
        momentum=0.9,
        epsilon_inside=True,
    ),
    _row(
        "rmsprop/eps-inside-centered",
        "keras optax",
        eps=1e-7,
        centered=True,
        epsilon_inside=True,
    ),
    _row(
        "rmsprop/eps-inside-centered-momentum",
        "keras optax",
        0.005,
        eps=1e-4,
        rho=0.95,
        momentum=0.5,
        centered=True,
        epsilon_inside=True,
    ),
    _row("rmsprop/initial-1", "optax", 0.01, epsilon_inside=True, initial_value=1.0),
    # Adagrad. torch adds epsilon outside the root, Keras and Optax inside.
    _row("adagrad/defaults", "torch"),
    _row("adagrad/rate-decay-0.05", "torch", 0.1, eps=1e-3, rate_decay=0.05),
    _row("adagrad/initial-0.1", "torch", 0.05, initial_accumulator_value=0.1),
    _row(
        "adagrad/eps-inside",
        "keras optax",
        0.001,
        eps=1e-7,
        epsilon_inside=True,
        initial_accumulator_value=0.1,
    ),
    _row("adagrad/eps-inside-1e-3", "keras optax", 0.1, eps=1e-3, epsilon_inside=True),
    _row("adadelta/defaults", "torch optax keras"),
    _row("adadelta/rho-0.95", "torch optax keras", 0.5, eps=1e-4, rho=0.95),
    # Adam. With amsgrad, torch takes the maximum before the bias correction, and
    # Optax after it. Keras does as torch, and adds another epsilon.
    _row("adam/amsgrad", "torch", amsgrad=True),
    _row("adam/amsgrad-beta2-0.9", "torch", 0.01, (0.8, 0.9), 1e-3, amsgrad=True),
    _row("adam/max-corrected", "optax", amsgrad=True, max_corrected=True),
    _row(
        "adam/max-corrected-beta2-0.9",
        "optax",
        0.01,
        (0.8, 0.9),
        1e-3,
        amsgrad=True,
        max_corrected=True,
    ),
    _row("adam/epsilon-hat", "keras", eps=1e-7, epsilon_hat=True),
    _row("adam/epsilon-hat-1e-3", "keras", 0.01, (0.8, 0.99), 1e-3, epsilon_hat=True),
    _row(
        "adam/epsilon-hat-amsgrad",
        "keras",
        0.01,
        (0.9, 0.9),
        1e-3,
        epsilon_hat=True,
        amsgrad=True,
    ),
    _row(
        "adamw/amsgrad", "torch", 0.01, (0.9, 0.9), 1e-4, amsgrad=True, weight_decay=0.1
    ),
    _row("adamw/epsilon-hat", "keras", eps=1e-7, epsilon_hat=True, weight_decay=0.004),
    _row(
        "adamw/epsilon-hat-amsgrad",
        "keras",
        0.02,
        (0.9, 0.9),
        1e-3,
        epsilon_hat=True,
        amsgrad=True,
        weight_decay=0.1,
    ),
    _row(
        "adamw/rate-independent",
        "torch optax",
        weight_decay=0.001,
        rate_independent=True,
    ),
    _row("adamax/defaults", "keras"),
    _row("adamax/eps-1e-3", "keras", 0.01, (0.8, 0.9), 1e-3),
    _row("adamax/eps-inside-max", "torch optax", epsilon_inside_max=True),
    _row(
        "adamax/eps-inside-max-1e-3",
        "torch optax",
        0.01,
        (0.8, 0.9),
        1e-3,
        epsilon_inside_max=True,
    ),
    # NAdam. Keras has no momentum_decay: its exponent is the step.
    _row("nadam/defaults", "torch"),
    _row(
        "nadam/momentum-decay-0.1", "torch", 0.01, (0.8, 0.99), 1e-3, momentum_decay=0.1
    ),
    _row("nadam/momentum-decay-1", "torch keras", 0.001, eps=1e-7, momentum_decay=1.0),
    _row(
        "nadam/momentum-decay-1-eps-1e-3",
        "torch keras",
        0.01,
        (0.8, 0.99),
        1e-3,
        momentum_decay=1.0,
    ),
    _row("nadam/simple", "optax", 0.001, form="simple"),
    _row("nadam/simple-eps-1e-3", "optax", 0.01, (0.8, 0.99), 1e-3, form="simple"),
    _row("radam/epsilon-hat", "torch pytorch_optimizer", epsilon_hat=True),
    _row(
        "radam/epsilon-hat-beta2-0.9",
        "torch pytorch_optimizer",
        0.01,
        (0.9, 0.9),
        1e-4,
        epsilon_hat=True,
    ),
    _row(
        "radam/epsilon-hat-wd-0.1",
        "torch pytorch_optimizer",
        0.02,
        (0.8, 0.95),
        epsilon_hat=True,
        weight_decay=0.1,
    ),
    _row("radam/defaults", "optax"),
    _row("radam/beta2-0.9", "optax", 0.01, (0.9, 0.9), 1e-4),
    _row("radam/threshold-4.5", "optax", sma_threshold=4.5),
    _row("radam/wd-0.1", "optax", 0.02, (0.8, 0.95), weight_decay=0.1),
    _row(
        "radam/warmup",
        "optax",
        0.02,
        (0.9, 0.95),
        weight_decay=0.1,
        total_steps=20,
        warmup_proportion=0.25,
        min_learning_rate=0.001,
    ),
    _row(
        "adabelief/no-rectify",
        "adabelief pytorch_optimizer optax",
        eps=1e-16,
        rectify=False,
    ),
    _row(
        "adabelief/no-rectify-eps-1e-6",
        "adabelief pytorch_optimizer optax",
        0.01,
        (0.8, 0.99),
        1e-6,
        rectify=False,
    ),
    _row(
        "adabelief/eps-inner-1e-6",
        "optax",
        0.01,
        (0.8, 0.99),
        1e-3,
        rectify=False,
        epsilon_inner=1e-6,
    ),
    _row(
        "adabelief/amsgrad",
        "adabelief pytorch_optimizer",
        0.01,
        (0.9, 0.9),
        1e-8,
        amsgrad=True,
        rectify=False,
    ),
    _row(
        "adabelief/decay-rate",
        "adabelief pytorch_optimizer",
        0.01,
        eps=1e-10,
        rectify=False,
        weight_decay=0.1,
    ),
    _row(
        "adabelief/decay-fixed",
        "adabelief pytorch_optimizer",
        0.01,
        eps=1e-10,
        rectify=False,
        weight_decay=0.01,
        decay="fixed",
    ),
    _row(
        "adabelief/decay-coupled",
        "adabelief pytorch_optimizer",
        0.01,
        eps=1e-10,
        rectify=False,
        weight_decay=0.1,
        decay="coupled",
    ),
    _row(
        "adabelief/decay-direction",
        "optax",
        0.01,
        eps=1e-10,
        rectify=False,
        weight_decay=0.1,
        decay="direction",
    ),
    _row(
        "adabelief/warmup",
        "optax",
        0.02,
        (0.9, 0.95),
        1e-10,
        rectify=False,
        total_steps=20,
        warmup_proportion=0.25,
        min_learning_rate=0.001,
        weight_decay=0.1,
        decay="direction",
    ),
    _row(
        "adabelief/rectify", "adabelief pytorch_optimizer", eps=1e-16, epsilon_hat=True
    ),
    _row(
        "adabelief/rectify-beta2-0.9",
        "adabelief pytorch_optimizer",
        0.01,
        (0.9, 0.9),
        1e-6,
        epsilon_hat=True,
    ),
    _row(
        "adabelief/rectify-decay-rate",
        "adabelief pytorch_optimizer",
        0.02,
        (0.8, 0.95),
        1e-8,
        epsilon_hat=True,
        weight_decay=0.1,
    ),
    _row(
        "adabelief/rectify-no-sgd",
        "adabelief pytorch_optimizer",
        0.01,
        eps=1e-8,
        epsilon_hat=True,
        degenerated_to_sgd=False,
    ),
    _row(
        "adabelief/rectify-threshold-4.5",
        "pytorch_optimizer",
        0.01,
        eps=1e-8,
        epsilon_hat=True,
        sma_threshold=4.5,
    ),
    _row(
        "adabelief/rectify-amsgrad",
        "pytorch_optimizer",
        0.01,
        (0.9, 0.9),
        1e-8,
        epsilon_hat=True,
        amsgrad=True,
    ),
    _row("ftrl/defaults", "keras"),
    _row(
        "ftrl/all-options",
        "keras",
        0.1,
        l1=0.01,
        l2=0.02,
        l2_shrinkage=0.03,
        beta=0.1,
    ),
    _row(
        "ftrl/power-0.2",
        "keras",
        0.05,
        learning_rate_power=-0.2,
        initial_accumulator_value=0.4,
        l1=0.05,
        l2=0.15,
        l2_shrinkage=0.01,
        beta=0.3,
    ),
    _row(
        "ftrl/initial-0",
        "keras pytorch_optimizer",
        0.1,
        initial_accumulator_value=0.0,
        l1=0.01,
        l2=0.05,
        beta=0.1,
    ),
    _row("lion/defaults", "keras optax pytorch_optimizer"),
    _row(
        "lion/wd-0.1",
        "keras optax pytorch_optimizer",
        0.02,
        (0.95, 0.98),
        weight_decay=0.1,
    ),
    _row("lamb/defaults", "keras optax"),
    _row("lamb/eps-1e-3", "keras optax", 0.02, (0.8, 0.95), 1e-3),
    _row("lamb/wd-0.1", "optax", 0.02, weight_decay=0.1),
    _row("adafactor/defaults", "keras torch"),
    _row(
        "adafactor/lr-0.3",
        "keras torch",
        0.3,
        beta2_decay=-0.65,
        epsilon2=0.5,
        clip_threshold=1.1,
    ),
    _row("adafactor/epsilon1-1e-3", "keras", 0.02, epsilon1=1e-3, clip_threshold=0.9),
    # Muon has Adam with Keras' epsilon for parameters whose rank is not 2. The
    # optax.json row puts Muon together from parts; its Adam has the other
    # epsilon, so there epsilon is 0.
    _row("muon/defaults", "keras"),
    _row(
        "muon/classical",
        "keras",
        0.02,
        eps=1e-3,
        momentum=0.9,
        nesterov=False,
        ns_steps=3,
        a=2.0,
        b=-1.5,
        c=0.5,
        rms_rate=0.0,
        weight_decay=0.1,
        adam_learning_rate_ratio=0.5,
        adam_beta1=0.8,
        adam_beta2=0.95,
        adam_weight_decay=0.02,
    ),
    _row(
        "muon/epsilon-0",
        "keras optax",
        0.01,
        eps=0.0,
        weight_decay=0.1,
        adam_weight_decay=0.05,
        adam_learning_rate_ratio=0.3,
    ),
    # Weight decay is in Keras only: it shrinks the parameter before the step.
    # Optax and pytorch_optimizer decay the sequence z.
    _row("schedule_free_adamw/defaults", "keras optax pytorch_optimizer"),
    _row(
        "schedule_free_adamw/lr-0.05",
        "keras optax pytorch_optimizer",
        0.05,
        (0.8, 0.99),
        1e-3,
    ),
    _row(
        "schedule_free_adamw/warmup-4", "keras pytorch_optimizer", 0.02, warmup_steps=4
    ),
    _row("schedule_free_adamw/wd-0.1", "keras", 0.02, (0.8, 0.99), weight_decay=0.1),
    _row("novograd/defaults", "optax pytorch_optimizer"),
    _row(
        "novograd/wd-0.01",
        "optax pytorch_optimizer",
        0.01,
        (0.95, 0.5),
        1e-3,
        weight_decay=0.01,
    ),
    _row(
        "novograd/grad-averaging",
        "pytorch_optimizer",
        0.05,
        (0.9, 0.98),
        weight_decay=0.02,
        grad_averaging=True,
    ),
    _row(
        "yogi/initial-1e-6",
        "optax pytorch_optimizer",
        initial_momentum=1e-6,
        epsilon_hat=False,
    ),
    _row(
        "yogi/initial-1e-2",
        "optax pytorch_optimizer",
        0.02,
        (0.8, 0.9),
        initial_accumulator_value=1e-2,
        initial_momentum=1e-2,
        epsilon_hat=False,
    ),
    _row("cocob/defaults", "optax parameterfree"),
    _row("cocob/alpha-5", "optax parameterfree", alpha=5.0),
]

_TOLERANCES = {name: TOLERANCE for name, _, _ in _ROWS} | {
    name: golden.WIDER_TOLERANCE for name, _, _ in _MORE_ROWS
}


def rows(source):
    """Returns the (name, rules) pairs of the file <source>.json."""
    return [
        (name, rules)
        for name, rules, files in _ROWS + _MORE_ROWS
        if source in files.split()
    ]


def write(name, source, generator, results):
    """Writes the golden file <name>.json; see golden.write.

    A row without a tolerance of its own has that of its name.
    """
    done = [
        (row, reference, rules, values, *(rest or [_TOLERANCES[row]]))
        for row, reference, rules, values, *rest in results
    ]
    golden.write(name, source, generator, done)
