"""Writes adabelief_tf.json: the golden rows computed by adabelief_tf.

The package derives its optimizer from the base class that Keras 2.11 renamed to
tf.keras.optimizers.legacy.Optimizer; the script puts that class back under its
old name.
"""

import importlib.metadata

import tensorflow as tf

tf.keras.optimizers.Optimizer = tf.keras.optimizers.legacy.Optimizer

from adabelief_tf import AdaBeliefOptimizer  # noqa: E402

import adabelief_rows  # noqa: E402
import problem  # noqa: E402
import golden  # noqa: E402
import tf_rows  # noqa: E402


VERSION = importlib.metadata.version("adabelief-tf")
SOURCE = f"adabelief-tf {VERSION} with tensorflow {tf.__version__} (float64, CPU)"


def main():
    results = []
    for name, r, args in adabelief_rows.rows("adabelief-tf"):
        initial, gradients = problem.problem()
        optimizer = AdaBeliefOptimizer(**args, print_change_log=False)
        values = tf_rows.run_eager(tf_rows.exact_hypers(optimizer), initial, gradients)
        reference = tf_rows.call("adabelief_tf.AdaBeliefOptimizer", args)
        results.append((name, reference, [r], values))
    golden.write("adabelief_tf", SOURCE, "generate_adabelief_tf.py", results)


if __name__ == "__main__":
    main()
