"""Writes numpy_constraints.json: the rows of constraint_rows.py, computed in plain NumPy."""

import numpy as np

import constraint_rows


def norm(w, axes):
    axis = tuple(axes) or tuple(range(w.ndim))
    return np.sqrt(np.sum(w * w, axis=axis, keepdims=True))


def onto_simplex(w, radius):
    """Duchi et al. 2008, by sorting."""
    x = w.reshape(-1)
    u = np.sort(x)[::-1]
    tau = (np.cumsum(u) - radius) / np.arange(1, u.size + 1)
    return np.maximum(w - tau[np.nonzero(u > tau)[0][-1]], 0)


def projected(rule, o, w):
    match rule:
        case "non_negative":
            return np.maximum(w, 0)
        case "box":
            return np.clip(w, o["min_value"], o["max_value"])
        case "simplex":
            return onto_simplex(w, o["radius"])
        case "l1_ball":
            if np.abs(w).sum() <= o["radius"]:
                return w
            return np.sign(w) * onto_simplex(np.abs(w), o["radius"])
        case "l2_ball":
            return w * min(1, o["radius"] / np.sqrt(np.sum(w * w)))
    n = norm(w, o["axes"])
    match rule:
        case "unit_norm":
            return w / (o["epsilon"] + n)
        case "max_norm":
            return w * np.minimum(n, o["max_value"]) / (o["epsilon"] + n)
        case "min_max_norm":
            clipped = np.clip(n, o["min_value"], o["max_value"])
            return w * (o["rate"] * clipped + (1 - o["rate"]) * n) / (o["epsilon"] + n)
    raise ValueError(rule)


def main():
    def project(rule, options):
        return f"{rule} {options}", lambda w: np.asarray(projected(rule, options, w))

    constraint_rows.write(
        "numpy_constraints",
        f"independent NumPy {np.__version__} implementation of constraints (float64)",
        "generate_numpy_constraints.py",
        project,
    )


if __name__ == "__main__":
    main()
