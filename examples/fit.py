"""Train on handwritten digits with few labels: with the graph of nearest neighbors, and without any.

Run with `python examples/fit.py`.
"""

import torch

import gind
from gind.baselines import MLP
from gind.datasets import load
from gind.train import evaluate, make_parts

EPOCHS = {"GIND": 20, "MLP": 200}  # an epoch of the MLP costs next to nothing


def main() -> None:
    torch.set_num_threads(1)
    digits = load("digits", neighbors=5, fractions=(0.03, 0.07, 0.9))
    split = digits.split(0)
    print(f"{digits.graphs[0].num_nodes} images, {len(split.train)} labels to train on, {len(split.val)} to validate")

    torch.manual_seed(0)
    models = {
        "GIND": gind.GIND(64, 32, 10, dropout=0.2, scaling=gind.Row(), stop=gind.Stop(1e-3)),
        "MLP": MLP(64, 32, 10, dropout=0.2),
    }
    test = make_parts(digits, split.test, 1)  # `fit` does not see these labels
    for name, model in models.items():
        report = gind.fit(model, digits, split=0, epochs=EPOCHS[name], lr=0.02)
        accuracy = evaluate(model, test, digits.task, digits.metric).value
        print(f"\n{name}: {report}")
        print(f"accuracy on {len(split.test)} test images {accuracy:.3f}")
        steps = sum(record.steps for record in report.history) / len(report.history)
        unsolved = sum(record.open for record in report.history)
        if steps:
            print(f"{steps:.0f} steps per solve, {unsolved} solves above the tolerance")

    (data,) = digits.graphs
    certified = gind.certify_model(models["GIND"], lambda: models["GIND"](data.x, data.edge_index))
    assert certified is not None
    print(f"\n{certified.layers[0]}")


if __name__ == "__main__":
    main()
