"""Writes torch.json: the schedulers of PyTorch, in Python's floats."""

import warnings

import torch
from torch.optim import lr_scheduler as L

import golden_schedules

RATE = 0.1

# Schedulers that multiply the rate from step to step gather rounding errors.
WIDER = 1e-10


def run(make, steps):
    """Returns the learning rates of the steps."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=RATE)
    scheduler = make(optimizer)
    values = []
    for i in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        if i + 1 < steps:
            optimizer.step()
            scheduler.step()
    return values


def one(name, cls, config_class, steps, args, tolerance=1e-12, **more):
    """A scheduler whose arguments are understood here under torch's names."""
    reference = (
        f"torch.optim.lr_scheduler.{cls}(lr={RATE}, "
        + ", ".join(f"{k}={v!r}" for k, v in args.items())
        + ")"
    )
    values = run(lambda o: getattr(L, cls)(o, **args), steps)
    args = {k: v for k, v in args.items() if k != "cycle_momentum" and v is not None}
    return golden_schedules.row(
        name, reference, {"class": config_class, **args, **more}, values, tolerance
    )


def composed(name, reference, make, config, steps, tolerance=WIDER):
    return golden_schedules.row(
        name,
        "torch.optim.lr_scheduler." + reference,
        config,
        run(make, steps),
        tolerance,
    )


def cycle(name, steps, **args):
    return one(
        name,
        "CyclicLR",
        "cyclic",
        steps,
        {"base_lr": 0.01, "max_lr": 0.1, **args, "cycle_momentum": False},
    )


def one_cycle(name, total, **args):
    args = {"max_lr": 0.1, "total_steps": total, **args, "cycle_momentum": False}
    return one(name, "OneCycleLR", "one_cycle", total, args)


def rows():
    linear = {
        "class": "linear",
        "initial": RATE * 0.25,
        "end": RATE * 0.75,
        "total_iters": 8,
    }
    factor = {"class": "linear", "initial": 0.25, "end": 1.0, "total_iters": 4}
    exponential = {
        "class": "exponential_decay",
        "base_lr": RATE,
        "decay_steps": 1,
        "gamma": 0.9,
    }
    step = {"class": "step_decay", "base_lr": RATE, "step_size": 3, "gamma": 0.5}
    return [
        one(
            "step",
            "StepLR",
            "step_decay",
            13,
            {"step_size": 3, "gamma": 0.5},
            base_lr=RATE,
        ),
        one("step-default", "StepLR", "step_decay", 13, {"step_size": 4}, base_lr=RATE),
        one(
            "multi-step",
            "MultiStepLR",
            "multi_step_decay",
            21,
            {"milestones": [3, 4, 9], "gamma": 0.3},
            base_lr=RATE,
        ),
        composed(
            "constant",
            "ConstantLR(lr=0.1, factor=0.5, total_iters=4)",
            lambda o: L.ConstantLR(o, 0.5, 4),
            {
                "class": "piecewise_constant_decay",
                "boundaries": [4],
                "values": [0.05, 0.1],
                "from_boundary": True,
            },
            9,
        ),
        composed(
            "linear",
            "LinearLR(lr=0.1, start_factor=0.25, end_factor=0.75, total_iters=8)",
            lambda o: L.LinearLR(o, 0.25, 0.75, 8),
            linear,
            17,
        ),
        one(
            "exponential",
            "ExponentialLR",
            "exponential_decay",
            31,
            {"gamma": 0.9},
            WIDER,
            base_lr=RATE,
            decay_steps=1,
        ),
        one(
            "polynomial",
            "PolynomialLR",
            "polynomial_decay",
            21,
            {"total_iters": 10, "power": 2.5},
            WIDER,
            base_lr=RATE,
            end=0,
        ),
        one(
            "annealing",
            "CosineAnnealingLR",
            "cosine_annealing",
            41,
            {"T_max": 10, "eta_min": 0.01},
            WIDER,
            base_lr=RATE,
        ),
        one(
            "restarts",
            "CosineAnnealingWarmRestarts",
            "cosine_decay_restarts",
            31,
            {"T_0": 10},
            base_lr=RATE,
            t_mul=1,
        ),
        one(
            "restarts-2",
            "CosineAnnealingWarmRestarts",
            "cosine_decay_restarts",
            72,
            {"T_0": 10, "T_mult": 2},
            base_lr=RATE,
        ),
        one(
            "restarts-3",
            "CosineAnnealingWarmRestarts",
            "cosine_decay_restarts",
            130,
            {"T_0": 1, "T_mult": 3},
            base_lr=RATE,
        ),
        composed(
            "restarts-min",
            "CosineAnnealingWarmRestarts(lr=0.1, T_0=5, T_mult=2, eta_min=0.02)",
            lambda o: L.CosineAnnealingWarmRestarts(o, 5, 2, 0.02),
            {
                "class": "cosine_decay_restarts",
                "base_lr": RATE,
                "t_0": 5,
                "t_mult": 2,
                "alpha": 0.2,
            },
            36,
            1e-12,
        ),
        cycle("cyclic", 41, step_size_up=10),
        cycle("cyclic-uneven", 41, step_size_up=4, step_size_down=9),
        cycle("cyclic-2", 41, step_size_up=5, step_size_down=3, mode="triangular2"),
        cycle(
            "cyclic-exp",
            41,
            step_size_up=5,
            step_size_down=7,
            mode="exp_range",
            gamma=0.97,
        ),
        one_cycle("onecycle", 40),
        one_cycle("onecycle-linear", 40, anneal_strategy="linear"),
        one_cycle("onecycle-three", 40, three_phase=True, pct_start=0.25),
        one_cycle(
            "onecycle-three-half",
            21,
            three_phase=True,
            pct_start=0.5,
            anneal_strategy="linear",
            div_factor=10.0,
            final_div_factor=50.0,
        ),
        one_cycle("onecycle-fraction", 17, pct_start=0.4, anneal_strategy="cos"),
        one_cycle("onecycle-short", 3, pct_start=0.2),
        one_cycle("onecycle-late", 9, pct_start=1.0),
        composed(
            "sequential",
            "SequentialLR(lr=0.1, [LinearLR(0.25, 0.75, 8), StepLR(3, 0.5), ExponentialLR(0.9)], [6, 13])",
            lambda o: L.SequentialLR(
                o,
                [
                    L.LinearLR(o, 0.25, 0.75, 8),
                    L.StepLR(o, 3, 0.5),
                    L.ExponentialLR(o, 0.9),
                ],
                [6, 13],
            ),
            {
                "class": "sequential",
                "schedulers": [linear, step, exponential],
                "milestones": [6, 13],
            },
            27,
        ),
        composed(
            "chained",
            "ChainedScheduler(lr=0.1, [LinearLR(0.25, 1.0, 4), ExponentialLR(0.9)])",
            lambda o: L.ChainedScheduler(
                [L.LinearLR(o, 0.25, 1.0, 4), L.ExponentialLR(o, 0.9)]
            ),
            {"class": "product", "schedulers": [exponential, factor]},
            21,
        ),
    ]


def main():
    warnings.simplefilter(
        "ignore"
    )  # torch wants optimizer.step() before the first scheduler.step()
    source = f"torch {torch.__version__.split('+')[0]} (Python floats)"
    golden_schedules.write("torch", source, "generate_torch.py", rows())


if __name__ == "__main__":
    main()
