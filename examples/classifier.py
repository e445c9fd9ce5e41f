"""`GINDClassifier` beside two estimators of scikit-learn, on wines of which few have a label.

A short training to show the code: which of the three is ahead depends on the draw and on the number of epochs.

Run with `python examples/classifier.py`.
"""

import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

import gind

DRAWS, LABELS = 2, 5


def main() -> None:
    torch.set_num_threads(1)
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    print(f"{len(y)} wines, {LABELS} labels of each of 3 classes; accuracy on the others in {DRAWS} draws")
    scores: dict[str, list[float]] = {}
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        known = np.concatenate([rng.choice(np.flatnonzero(y == k), LABELS, replace=False) for k in range(3)])
        few = np.full_like(y, -1)
        few[known] = y[known]
        others = few == -1

        # with so few labels none is held out: all epochs train, and the graph does the rest
        classifier = gind.GINDClassifier(hidden=16, epochs=30, unlabelled=-1, options={"stop": gind.Stop(1e-3)})
        answers = {
            "GINDClassifier": classifier.fit(X, few).transduction_,
            "LabelSpreading": LabelSpreading(kernel="knn", n_neighbors=10).fit(X, few).transduction_,
            "KNeighborsClassifier": KNeighborsClassifier(3).fit(X[known], y[known]).predict(X),
        }
        for name, answer in answers.items():
            scores.setdefault(name, []).append(float((answer == y)[others].mean()))
    for name, values in scores.items():
        print(f"{name:22}", "  ".join(f"{value:.3f}" for value in values), f"  mean {np.mean(values):.3f}")
    certified = classifier.certificate_
    assert certified is not None
    print(f"last fit: residual {certified.residual:.1e}, distance to the equilibrium at most {certified.bound:.1e}")


if __name__ == "__main__":
    main()
