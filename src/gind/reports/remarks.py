"""Remarks on results: prose by hand, which no table can compute.

A file beside the sheet, remarks/<sheet>.toml, by model (or a variant of it, as [gind+paper]) and dataset; `all` is for
every dataset without its own. Before the first model `all` is on the whole item of the ledger:

    all = "The paper ..."

    [gcn]
    all = "The authors ..."
    texas = "..."
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from gind.datasets.table import nearest
from gind.experiments.keys import ConfigError
from gind.experiments.sheet import Sheet
from gind.experiments.toml import read_toml

__all__ = ["Remarks", "read_remarks"]


@dataclasses.dataclass(frozen=True)
class Remarks:
    """Remarks by model and dataset, and one on all of them."""

    texts: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    whole: str = ""

    def find(self, model: str, dataset: str) -> str:
        """The remark on a model and a dataset; else on the model; else nothing."""
        texts = self.texts.get(model, {})
        return texts.get(dataset, texts.get("all", ""))


def read_remarks(path: Path, sheet: Sheet) -> Remarks:
    """The remarks that belong to the sheet at `path`, none if there is no file; refused if they fit no cell."""
    file = path.parent / "remarks" / path.name
    if not file.exists():
        return Remarks()
    table = dict(read_toml(file))
    whole = table.pop("all", "")
    if not isinstance(whole, str):
        raise ConfigError(f"{file}: `all` must be a text, got {whole!r}.")
    named = {model: [cell for cell in sheet.cells if model in cell.names] for model in table}
    datasets = {model: {cell.dataset for cell in cells} for model, cells in named.items()}
    models = {name for cell in sheet.cells for name in cell.names}
    for model, texts in table.items():
        if model not in models:
            raise ConfigError(f"{file}: the sheet has no model {model!r}. {nearest(model, models)}")
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise ConfigError(f"{file}: [{model}] must have one text for each dataset, or for all.")
        for dataset in set(texts) - {"all"} - datasets[model]:
            advice = nearest(dataset, datasets[model])
            raise ConfigError(f"{file}: the sheet does not run {model} on {dataset!r}. {advice}")
    return Remarks(
        {model: {name: " ".join(text.split()) for name, text in texts.items()} for model, texts in table.items()},
        " ".join(whole.split()),
    )
