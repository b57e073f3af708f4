"""Writes numpy_gradients.json: the rows of gradient_rows.py, computed in plain NumPy."""

import numpy as np

import golden
import gradient_rows
import problem


def norm(arrays):
    return np.sqrt(sum(np.sum(x * x) for x in arrays))


def prepared(config, tagged, raw):
    """The gradients of all parameters, prepared as RETURNN's documentation says."""
    names = gradient_rows.NAMES
    total = norm(
        g for name, g in zip(names, raw, strict=True) if not tagged or name in tagged
    )
    out = []
    for g in raw:
        if c := config.get("gradient_clip"):
            g = np.maximum(np.minimum(g, c), -c)
        if c := config.get("gradient_clip_norm"):
            g = g * c / max(norm([g]), c)
        if c := config.get("gradient_clip_avg_norm"):
            g = g if norm([g]) / g.size <= c else g * c * g.size / norm([g])
        if c := config.get("gradient_clip_global_norm"):
            g = g * c / max(total, c)
        if config.get("gradient_nan_inf_filter"):
            g = np.where(np.isfinite(g), g, 0.0)
        if (c := config.get("grad_norm_to_clip_to_zero")) and not total <= c:
            g = np.zeros_like(g)
        out.append(g)
    return out


def run(config, tagged):
    params, gradients = problem.problem()
    velocity = [0.0 for _ in params]
    values = []
    for raw in gradients:
        grads = prepared(config, tagged, raw)
        velocity = [
            gradient_rows.MU * v + g for v, g in zip(velocity, grads, strict=True)
        ]
        params = [
            w - gradient_rows.RATE * v for w, v in zip(params, velocity, strict=True)
        ]
        values.append([np.asarray(w) for w in params])
    return values


def main():
    results = []
    for name, config, tagged, rules in gradient_rows.ROWS:
        reference = f"{config}" + (f" over {', '.join(tagged)}" if tagged else "")
        results.append((name, reference, rules, run(config, tagged)))
    source = (
        f"independent NumPy {np.__version__} implementation of RETURNN's preparation"
        " of gradients (float64)"
    )
    golden.write("numpy_gradients", source, "generate_numpy_gradients.py", results)


if __name__ == "__main__":
    main()
