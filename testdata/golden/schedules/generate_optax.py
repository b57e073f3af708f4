"""Writes optax.json: the schedules of optax, in float64."""

import itertools

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import optax

import golden_schedules


def simple(name, function, cls, steps, args, **fixed):
    """A schedule whose arguments are understood here under optax's names; fixed
    are options that optax has in other forms."""
    reference = (
        f"optax.{function}(" + ", ".join(f"{k}={v!r}" for k, v in args.items()) + ")"
    )
    s = getattr(optax, function)(**args)
    return golden_schedules.row(
        name, reference, {"class": cls, **args, **fixed}, [s(i) for i in range(steps)]
    )


def piecewise(name, function, cls, steps, args, **fixed):
    """A schedule of boundaries_and_scales, which multiply all before."""
    s = getattr(optax, function)(**args)
    scales = args["boundaries_and_scales"]
    values = list(
        itertools.accumulate([args["init_value"], *scales.values()], lambda a, b: a * b)
    )
    config = {"class": cls, "boundaries": list(scales), "values": values, **fixed}
    reference = (
        f"optax.{function}(" + ", ".join(f"{k}={v!r}" for k, v in args.items()) + ")"
    )
    return golden_schedules.row(name, reference, config, [s(i) for i in range(steps)])


def composed(name, reference, schedule, config, steps):
    return golden_schedules.row(
        name, reference, config, [schedule(i) for i in range(steps)]
    )


SGDR = [
    dict(
        init_value=0.0, peak_value=0.1, warmup_steps=3, decay_steps=10, end_value=0.01
    ),
    dict(
        init_value=0.01,
        peak_value=0.05,
        warmup_steps=2,
        decay_steps=8,
        end_value=0.0,
        exponent=2.0,
    ),
]


def rows():
    scales = {4: 0.5, 9: 0.1, 10: 4.0}
    cosine = dict(init_value=0.1, decay_steps=10, alpha=0.1, exponent=1.5)
    exponential = dict(
        init_value=0.1,
        transition_steps=4,
        decay_rate=0.5,
        transition_begin=3,
        end_value=0.01,
    )
    warm = dict(
        init_value=0.01,
        peak_value=0.1,
        warmup_steps=5,
        transition_steps=4,
        decay_rate=0.5,
        transition_begin=2,
    )
    warm_exponential = {
        "class": "exponential_decay",
        "init_value": 0.1,
        "transition_steps": 4,
        "decay_rate": 0.5,
        "transition_begin": 2,
    }
    return [
        golden_schedules.row(
            "constant",
            "optax.constant_schedule(0.3)",
            {"class": "constant", "value": 0.3},
            [optax.constant_schedule(0.3)(i) for i in range(3)],
        ),
        simple(
            "linear",
            "linear_schedule",
            "linear",
            21,
            dict(init_value=0.1, end_value=0.01, transition_steps=10),
        ),
        simple(
            "linear-rise",
            "linear_schedule",
            "linear",
            21,
            dict(init_value=0.0, end_value=0.1, transition_steps=7, transition_begin=4),
        ),
        simple(
            "polynomial",
            "polynomial_schedule",
            "polynomial_decay",
            31,
            dict(
                init_value=0.1,
                end_value=0.01,
                power=2.5,
                transition_steps=10,
                transition_begin=3,
            ),
        ),
        piecewise(
            "piecewise-constant",
            "piecewise_constant_schedule",
            "piecewise_constant_decay",
            21,
            dict(init_value=0.1, boundaries_and_scales=scales),
            from_boundary=True,
        ),
        piecewise(
            "piecewise-linear",
            "piecewise_interpolate_schedule",
            "piecewise_interpolate",
            21,
            dict(
                interpolate_type="linear", init_value=0.1, boundaries_and_scales=scales
            ),
            interpolate_type="linear",
        ),
        piecewise(
            "piecewise-cosine",
            "piecewise_interpolate_schedule",
            "piecewise_interpolate",
            21,
            dict(
                interpolate_type="cosine", init_value=0.1, boundaries_and_scales=scales
            ),
            interpolate_type="cosine",
        ),
        simple(
            "exponential", "exponential_decay", "exponential_decay", 31, exponential
        ),
        simple(
            "exponential-staircase",
            "exponential_decay",
            "exponential_decay",
            31,
            {**exponential, "staircase": True},
        ),
        simple(
            "exponential-growth",
            "exponential_decay",
            "exponential_decay",
            31,
            {**exponential, "decay_rate": 1.5, "end_value": 0.3},
        ),
        simple(
            "cosine",
            "cosine_decay_schedule",
            "cosine_decay",
            21,
            dict(init_value=0.1, decay_steps=10),
        ),
        simple("cosine-exponent", "cosine_decay_schedule", "cosine_decay", 21, cosine),
        simple(
            "onecycle-linear",
            "linear_onecycle_schedule",
            "one_cycle",
            42,
            dict(transition_steps=21, peak_value=0.1),
            form="optax",
            anneal="linear",
            three_phase=True,
        ),
        simple(
            "onecycle-linear-options",
            "linear_onecycle_schedule",
            "one_cycle",
            42,
            dict(
                transition_steps=20,
                peak_value=0.1,
                pct_start=0.25,
                pct_final=0.6,
                div_factor=10.0,
                final_div_factor=100.0,
            ),
            form="optax",
            anneal="linear",
            three_phase=True,
        ),
        simple(
            "onecycle-cosine",
            "cosine_onecycle_schedule",
            "one_cycle",
            42,
            dict(transition_steps=21, peak_value=0.1),
            form="optax",
        ),
        composed(
            "warmup-constant",
            "optax.warmup_constant_schedule(0.01, 0.1, 5)",
            optax.warmup_constant_schedule(0.01, 0.1, 5),
            {
                "class": "warmup",
                "of": {"class": "constant", "value": 0.1},
                "warmup_steps": 5,
                "init_value": 0.01,
            },
            11,
        ),
        simple(
            "warmup-cosine",
            "warmup_cosine_decay_schedule",
            "warmup_cosine_decay",
            41,
            {**SGDR[0], "decay_steps": 20},
        ),
        simple(
            "warmup-cosine-exponent",
            "warmup_cosine_decay_schedule",
            "warmup_cosine_decay",
            21,
            SGDR[1],
        ),
        composed(
            "warmup-exponential",
            "optax.warmup_exponential_decay_schedule("
            + ", ".join(f"{k}={v!r}" for k, v in warm.items())
            + ")",
            optax.warmup_exponential_decay_schedule(**warm),
            {
                "class": "warmup",
                "of": warm_exponential,
                "warmup_steps": 5,
                "init_value": 0.01,
            },
            31,
        ),
        composed(
            "sgdr",
            f"optax.sgdr_schedule({SGDR!r})",
            optax.sgdr_schedule(SGDR),
            {
                "class": "sequential",
                "schedules": [{"class": "warmup_cosine_decay", **k} for k in SGDR],
                "boundaries": [10],
            },
            37,
        ),
        composed(
            "join",
            "optax.join_schedules([linear_schedule(0.0, 0.1, 4), constant_schedule(0.1), exponential_decay(0.1, 3, 0.5)], [4, 9])",
            optax.join_schedules(
                [
                    optax.linear_schedule(0.0, 0.1, 4),
                    optax.constant_schedule(0.1),
                    optax.exponential_decay(0.1, 3, 0.5),
                ],
                [4, 9],
            ),
            {
                "class": "sequential",
                "boundaries": [4, 9],
                "schedules": [
                    {"class": "linear", "initial": 0.0, "end": 0.1, "steps": 4},
                    {"class": "constant", "value": 0.1},
                    {
                        "class": "exponential_decay",
                        "initial": 0.1,
                        "decay_steps": 3,
                        "decay_rate": 0.5,
                    },
                ],
            },
            21,
        ),
    ]


def main():
    source = f"optax {optax.__version__}, jax {jax.__version__} (float64, CPU)"
    golden_schedules.write("optax", source, "generate_optax.py", rows())


if __name__ == "__main__":
    main()
