"""Compares the rows that two golden files have in common.

Prints, per row, the largest difference relative to max(1, |x|), and the largest
of them all. Fails if one is above LIMIT or the row's float64 tolerance. Needs
only the JSON files.
"""

import itertools
import json
import os
import sys

FILES = [
    "torch.json",
    "torch_decay.json",
    "optax.json",
    "optax_decay.json",
    "keras.json",
    "keras2.json",
    "tf1.json",
    "addons.json",
    "returnn.json",
    "returnn_gradients.json",
    "adabelief.json",
    "adabelief_tf.json",
    "pytorch_optimizer.json",
    "parameterfree.json",
    "lasagne.json",
    "blocks.json",
    "blocks_finite.json",
    "numpy.json",
    "numpy_gradients.json",
    "ranger.json",
    "ranger_pytorch_optimizer.json",
    "numpy_ranger.json",
    "constraints_keras.json",
    "constraints_optax.json",
    "numpy_constraints.json",
    "base_keras.json",
]
LIMIT = 1e-11


def load(name):
    directory = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(directory, name), encoding="utf-8") as f:
        return json.load(f)


def numbers(values):
    return [x for step in values for param in step for x in param]


def difference(got, want):
    got, want = numbers(got), numbers(want)
    return max(abs(g - w) / max(1.0, abs(w)) for g, w in zip(got, want, strict=True))


def main():
    files = {name: load(name) for name in FILES}
    failed = False
    largest = 0.0
    for left, right in itertools.combinations(FILES, 2):
        if files[left]["problem"] != files[right]["problem"]:
            print(f"{left} and {right} hold different problems")
            failed = True
            continue
        others = {row["name"]: row for row in files[right]["rows"]}
        for row in files[left]["rows"]:
            other = others.get(row["name"])
            if other is None:
                continue
            diff = difference(row["values"], other["values"])
            ok = diff <= min(LIMIT, row["tolerance"]["float64"])
            ok = ok and row["rules"] == other["rules"]
            failed = failed or not ok
            largest = max(largest, diff)
            result = "ok" if ok else "FAIL"
            print(f"{left} {right} {row['name']:38} {diff:.2e} {result}")
    print(f"largest difference {largest:.2e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
