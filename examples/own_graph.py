"""A graph of one's own from files to predictions: write two CSV files, train, predict the nodes of a second graph.

The same on the command line: `gind train shops/ --out run`, then `gind predict run new/`.
Run with `python examples/own_graph.py`.
"""

import tempfile
from pathlib import Path

import numpy as np

from gind.experiments import load_artefact, make_spec, open_data, predict_run, run, write_predictions


def write_graph(directory: Path, nodes: int, seed: int, labels: bool) -> None:
    """Two kinds of shops: neighbors are mostly of the same kind, size and price tell the kinds apart a little."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=nodes)
    features = rng.normal(size=(nodes, 2)) + kind[:, None]
    directory.mkdir()
    with (directory / "nodes.csv").open("w") as file:
        file.write("id,label,size,price\n" if labels else "id,size,price\n")
        for i, (size, price) in enumerate(features):
            label = f"{('book', 'food')[kind[i]]}," if labels else ""
            file.write(f"s{i},{label}{size:.3f},{price:.3f}\n")
    with (directory / "edges.csv").open("w") as file:
        file.write("source,target\n")
        for i, j in rng.integers(nodes, size=(12 * nodes, 2)):
            if i != j and (kind[i] == kind[j] or rng.random() < 0.1):
                file.write(f"s{i},s{j}\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_graph(place / "shops", nodes=120, seed=0, labels=True)
        write_graph(place / "new", nodes=40, seed=1, labels=False)

        spec = make_spec({"dataset": str(place / "shops"), "hidden": 16, "epochs": 25})
        outcome = run(spec, place / "run", threads=1)
        print(outcome.fit)
        print("test", outcome.report["test"], "majority class", outcome.report["majority"])
        print("files of the run:", ", ".join(sorted(path.name for path in (place / "run").glob("[!.]*"))))

        trained = load_artefact(place / "run")
        new = open_data(trained, str(place / "new"), None, labels=False)
        write_predictions(place / "predictions.csv", predict_run(trained, new))
        print(*(place / "predictions.csv").read_text().splitlines()[:5], sep="\n")


if __name__ == "__main__":
    main()
