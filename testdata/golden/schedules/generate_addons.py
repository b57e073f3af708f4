"""Writes addons.json: the cyclical schedules of TensorFlow Addons, in float64."""

import tensorflow as tf
import tensorflow_addons as tfa

import golden_schedules


def row(name, cls, steps, at=None, mode=None, config=None, **args):
    """A schedule; its rates are float64 tensors, which the others follow."""
    rates = {
        k: tf.constant(args.pop(k), tf.float64)
        for k in ("initial_learning_rate", "maximal_learning_rate")
    }
    s = getattr(tfa.optimizers, cls)(**rates, **args)
    at = at or range(steps)
    plain = {k: float(v) for k, v in rates.items()}
    known = {k: v for k, v in args.items() if k != "scale_fn"}
    ours = {"class": "cyclic", **plain, **known, **(config or {})}
    if mode:
        ours["mode"] = mode
    reference = (
        f"tfa.optimizers.{cls}("
        + ", ".join(f"{k}={v!r}" for k, v in {**plain, **known}.items())
        + ")"
    )
    # The step is float64: the scale of Exponential… is a power of the step as it comes.
    r = golden_schedules.row(
        name, reference, ours, [s(tf.constant(i, tf.float64)) for i in at]
    )
    if not isinstance(at, range):
        r["at"] = at
    return r


def rows():
    lo_hi = dict(initial_learning_rate=0.1, maximal_learning_rate=1.0)
    return [
        row("triangular", "TriangularCyclicalLearningRate", 161, step_size=40, **lo_hi),
        row(
            "triangular2",
            "Triangular2CyclicalLearningRate",
            181,
            step_size=30,
            mode="triangular2",
            **lo_hi,
        ),
        row(
            "triangular2-iterations",
            "Triangular2CyclicalLearningRate",
            21,
            step_size=5,
            scale_mode="iterations",
            mode="triangular2",
            **lo_hi,
        ),
        row(
            "exponential",
            "ExponentialCyclicalLearningRate",
            81,
            step_size=20,
            gamma=0.97,
            mode="exp_range",
            **lo_hi,
        ),
        row(
            "exponential-long",
            "ExponentialCyclicalLearningRate",
            0,
            at=[0, 1, 100, 1000, 1999, 2000, 2001, 3999, 4000, 4001, 8000],
            step_size=2000,
            gamma=0.996,
            mode="exp_range",
            **lo_hi,
        ),
        row(
            "exponential-cycle",
            "ExponentialCyclicalLearningRate",
            41,
            step_size=5,
            gamma=0.5,
            scale_mode="cycle",
            mode="exp_range",
            **lo_hi,
        ),
        row("fraction", "TriangularCyclicalLearningRate", 21, step_size=2.5, **lo_hi),
        row(
            "scale-function",
            "CyclicalLearningRate",
            41,
            step_size=5,
            scale_fn=lambda x: 1 / (1 + 0.5 * x),
            config={
                "scale": {
                    "class": "inverse_time_decay",
                    "initial": 1,
                    "decay_steps": 1,
                    "decay_rate": 0.5,
                }
            },
            **lo_hi,
        ),
    ]


def main():
    source = f"tensorflow-addons {tfa.__version__}, tensorflow {tf.__version__} (float64, CPU)"
    golden_schedules.write("addons", source, "generate_addons.py", rows())


if __name__ == "__main__":
    main()
