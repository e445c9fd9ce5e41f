"""GraphML files, read in one pass by expat: it knows its line, and tells of a DOCTYPE before any entity is expanded."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

from gind.datasets.dataset import DataError
from gind.datasets.files.table import Builder, Place, Schema, Table, show

__all__ = ["GraphML", "read_graphml"]


@dataclasses.dataclass(frozen=True)
class GraphML:
    """What the file holds."""

    nodes: Table
    edges: Table
    directed: bool


@dataclasses.dataclass
class _Key:
    """An attribute that nodes or edges may have."""

    name: str
    domain: str
    default: str = ""


def read_graphml(path: Path, nodes: Schema, edges: Schema) -> GraphML:
    """The one graph of a GraphML file; of the attributes of edges only `weight` is read."""
    reader = _Reader(Place(str(path), word="attribute"), nodes, edges)
    try:
        with open(path, "rb") as file:
            reader.parser.ParseFile(file)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise DataError(f"{path}, line {error.lineno}: not well-formed XML ({reason}). Is the file whole?") from None
    except LookupError:
        raise DataError(f"{path}, line 1: unknown encoding. Save the file as UTF-8.") from None
    return reader.result()


class _Reader:
    """Handlers of expat: elements in, two tables out."""

    def __init__(self, place: Place, nodes: Schema, edges: Schema) -> None:
        self._place = place
        self._schemas = {"node": nodes, "edge": edges}
        self._directed = False
        self._keys: dict[str, _Key] = {}
        self._builders: dict[str, Builder] = {}
        self._defaults: dict[str, dict[str, str]] = {}
        # what is being read: the open elements, the key, the text, and the line, names and cells of a node or an edge
        self._open: list[str] = [""]
        self._key = ""
        self._text: list[str] = []
        self._line = 0
        self._ends: list[str] = []
        self._cells: dict[str, str] = {}
        self._starts: dict[tuple[str, str], Callable[[dict[str, str]], None]] = {
            ("graphml", "key"): self._start_key,
            ("graphml", "graph"): self._start_graph,
            ("graph", "node"): self._start_node,
            ("graph", "edge"): self._start_edge,
            ("node", "data"): self._start_data,
            ("edge", "data"): self._start_data,
        }
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text.append

    def result(self) -> GraphML:
        """The tables, after the last element."""
        if not self._builders:
            raise self._place.error("it holds no <graph>.")
        return GraphML(self._builders["node"].table(), self._builders["edge"].table(), self._directed)

    def _error(self, message: str) -> DataError:
        return DataError(f"{self._place()}, line {self.parser.CurrentLineNumber}: {message}")

    def _doctype(self, *_: object) -> None:
        raise self._error("a DOCTYPE is refused: entities it declares can fill the memory. Remove it.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        parent = self._open[-1]
        self._open.append(tag)
        self._text.clear()
        if start := self._starts.get((parent, tag)):
            start(attributes)
        elif not parent and tag != "graphml":
            raise self._error(f"expected a GraphML file, its first element is <{tag}>.")
        elif tag == "graph":
            raise self._error("a graph inside a node or an edge is not supported. Flatten it.")
        elif tag == "hyperedge":
            raise self._error("hyperedges are not supported. Replace each by edges between two nodes.")

    def _end(self, _: str) -> None:
        tag = self._open.pop()
        parent = self._open[-1]
        if tag == "data" and self._key in self._cells and parent in ("node", "edge"):
            self._cells[self._key] = "".join(self._text)
        elif tag in ("node", "edge") and parent == "graph":
            self._builders[tag].add(self._line, [*self._ends, *self._cells.values()])
        elif tag == "default" and parent == "key":
            self._keys[self._key].default = "".join(self._text)

    def _start_key(self, attributes: dict[str, str]) -> None:
        self._key = self._attribute(attributes, "id")
        # yEd declares keys without a name for its drawings
        domain = attributes.get("for", "all") if "attr.name" in attributes else "drawing"
        self._keys[self._key] = _Key(attributes.get("attr.name", "").strip(), domain)

    def _start_graph(self, attributes: dict[str, str]) -> None:
        if self._builders:
            raise self._error("a second <graph>: expected one graph. Write each to a file of its own.")
        default = self._attribute(attributes, "edgedefault")
        if default not in ("directed", "undirected"):
            raise self._error(f'expected edgedefault="directed" or "undirected", got {show(default)}.')
        self._directed = default == "directed"
        for tag, own in (("node", ["id"]), ("edge", ["source", "target"])):
            keys = {key: it for key, it in self._keys.items() if it.domain in (tag, "all")}
            if tag == "edge":  # tools write much about edges that is no weight
                keys = {key: it for key, it in keys.items() if it.name == "weight"}
            names = [*own, *(it.name for it in keys.values())]
            self._builders[tag] = Builder(self._place, names, self._schemas[tag])
            self._defaults[tag] = {key: it.default for key, it in keys.items()}

    def _start_node(self, attributes: dict[str, str]) -> None:
        self._line = self.parser.CurrentLineNumber
        self._ends = [self._attribute(attributes, "id")]
        self._cells = self._defaults["node"].copy()

    def _start_edge(self, attributes: dict[str, str]) -> None:
        if "directed" in attributes and (attributes["directed"] in ("true", "1")) != self._directed:
            raise self._error("directed and undirected edges in one graph are not supported. Write all as directed.")
        self._line = self.parser.CurrentLineNumber
        self._ends = [self._attribute(attributes, "source"), self._attribute(attributes, "target")]
        self._cells = self._defaults["edge"].copy()

    def _start_data(self, attributes: dict[str, str]) -> None:
        self._key = self._attribute(attributes, "key")
        if self._key not in self._keys:
            raise self._error(f"<data> has the key {show(self._key)}, but no <key> before <graph> declares it.")

    def _attribute(self, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            raise self._error(f"<{self._open[-1]}> has no {name!r}.")
        return attributes[name]
