"""Writes blocks_finite.json: Blocks' RemoveNotFinite where all steps are finite.

    python generate_blocks_finite.py CHECKOUT

CHECKOUT is that of generate_blocks.py.
"""

import sys

import aesara

import generate_blocks
import golden
import problem
from tf_rows import rule

# Row name, rules, and the step rules as (class, arguments) pairs.
ROWS = [
    (
        name,
        [
            rule("scale", learning_rate=0.1),
            {"name": "remove_not_finite", "options": {"scaler": scaler}},
        ],
        [("Scale", {"learning_rate": 0.1}), ("RemoveNotFinite", {"scaler": scaler})],
    )
    for name, scaler in (
        ("blocks/scale-then-remove-not-finite", 1.0),
        ("blocks/scale-then-remove-not-finite-0.1", 0.1),
    )
]


def main():
    # As in generate_blocks.py.
    aesara.config.mode = "FAST_COMPILE"
    aesara.config.cxx = ""
    generate_blocks.prepare()
    initial, gradients = problem.problem()
    algorithms = generate_blocks.load_algorithms(sys.argv[1])
    results = []
    for name, rules, steps in ROWS:
        reference, values = generate_blocks.run(algorithms, steps, initial, gradients)
        results.append((name, reference, rules, values))
    source = f"Blocks c69c2dc2 with aesara {aesara.__version__} (float64, CPU)"
    golden.write("blocks_finite", source, "generate_blocks_finite.py", results)


if __name__ == "__main__":
    main()
