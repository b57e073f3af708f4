"""The writer of the golden files of this folder."""

import json
import math
import os


def _compact(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def write(name, source, generator, rows):
    """Writes the golden file <name>.json, next to this script.

    Each row is a dict of JSON values; its numbers have float64 precision. Every
    key is a line of its own.
    """
    for row in rows:
        for v in row["values"]:
            if not math.isfinite(v):
                raise ValueError(f"{row['name']}: {v}")
    out = ["{\n"]
    out.append(
        f' "source": {_compact(source)},\n "generator": {_compact(generator)},\n "rows": [\n'
    )
    for i, row in enumerate(rows):
        lines = ",\n".join(f"   {_compact(k)}: {_compact(v)}" for k, v in row.items())
        out.append("  {\n" + lines + "\n  }" + (",\n" if i + 1 < len(rows) else "\n"))
    out.append(" ]\n}\n")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".json")
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(out))


def row(name, reference, config, values, tolerance=1e-12):
    """A row of a schedule: config is what this library makes it of, values are
    those of the steps from 0, tolerance is relative to the largest |value|."""
    values = [float(v) for v in values]
    return {
        "name": name,
        "reference": reference,
        "config": config,
        "tolerance": tolerance,
        "values": values,
    }
