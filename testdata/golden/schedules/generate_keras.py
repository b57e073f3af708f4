"""Writes keras.json: the schedules of Keras, in float64, with Keras' own configs."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import keras
from keras.optimizers import schedules as S
from keras.src.backend.common import dtypes

import golden_schedules

keras.config.set_floatx("float64")
# Without this, Keras computes the cosine of float64 in float32.
dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"


def rows():
    """Returns the schedules with the numbers of steps to write."""
    return [
        ("exponential", S.ExponentialDecay(0.1, 10, 0.5), 31),
        ("exponential-staircase", S.ExponentialDecay(0.1, 10, 0.5, True), 31),
        ("exponential-fraction", S.ExponentialDecay(0.05, 2.5, 0.96, True), 13),
        ("piecewise", S.PiecewiseConstantDecay([5, 10], [1.0, 0.5, 0.1]), 21),
        (
            "piecewise-every",
            S.PiecewiseConstantDecay([1, 2, 3], [0.4, 0.5, 0.6, 0.7]),
            7,
        ),
        ("polynomial", S.PolynomialDecay(0.1, 10, 0.01), 21),
        ("polynomial-defaults", S.PolynomialDecay(0.1, 10), 21),
        ("polynomial-root", S.PolynomialDecay(0.05, 10, 0.001, 0.5), 21),
        ("polynomial-cycle", S.PolynomialDecay(0.1, 10, 0.01, 2.0, True), 41),
        ("polynomial-root-cycle", S.PolynomialDecay(0.05, 7.5, 0.001, 0.5, True), 41),
        ("polynomial-rise", S.PolynomialDecay(0.01, 10, 0.1, 2.0), 21),
        ("inverse-time", S.InverseTimeDecay(0.1, 10, 0.5), 31),
        ("inverse-time-staircase", S.InverseTimeDecay(0.1, 10, 0.96, True), 31),
        ("cosine", S.CosineDecay(0.1, 10), 21),
        ("cosine-alpha", S.CosineDecay(0.1, 10, 0.1), 21),
        (
            "cosine-warmup",
            S.CosineDecay(0.0, 10, warmup_target=0.1, warmup_steps=5),
            31,
        ),
        (
            "cosine-alpha-warmup",
            S.CosineDecay(0.01, 10, 0.1, warmup_target=0.1, warmup_steps=5),
            31,
        ),
        ("cosine-target", S.CosineDecay(0.1, 10, warmup_target=0.2), 21),
        ("restarts", S.CosineDecayRestarts(0.1, 10), 72),
        ("restarts-t1", S.CosineDecayRestarts(0.1, 10, 1.0, 0.9, 0.1), 41),
        ("restarts-t1.5", S.CosineDecayRestarts(0.1, 10, 1.5, 0.8), 51),
        ("restarts-long", S.CosineDecayRestarts(0.1, 1000, 2.0, 0.9, 0.1), None),
    ]


LONG = [0, 1, 250, 500, 999, 1000, 1001, 1250, 2000, 2999, 3000, 3001, 6999, 7000, 7001]


def main():
    results = []
    for name, s, n in rows():
        steps = LONG if n is None else range(n)
        config = {"class": type(s).__name__, **s.get_config()}
        r = golden_schedules.row(
            name,
            f"keras.optimizers.schedules.{type(s).__name__}",
            config,
            [s(i) for i in steps],
        )
        if n is None:
            r["at"] = LONG
        results.append(r)
    source = f"keras {keras.__version__}, jax {jax.__version__} (float64, CPU)"
    golden_schedules.write("keras", source, "generate_keras.py", results)


if __name__ == "__main__":
    main()
