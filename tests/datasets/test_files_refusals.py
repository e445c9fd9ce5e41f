"""What is refused of a user's graph: one line that names the file, the line or row and the column, and the reason."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from gind.datasets import DataError
from gind.datasets.files import read_graph

Files = dict[str, Any]

NODES = "id,age,label\na,1,x\nb,2,y\nc,3,x\nd,4,y\n"
EDGES = "source,target\na,b\n"
X, Y = np.ones((4, 2)), np.array([0, 1, 0, 1])
HEAD = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    '<key id="f" for="node" attr.name="age" attr.type="double"/><key id="l" for="node" attr.name="label"/>\n'
)
GRAPH = '<graph edgedefault="directed">\n'
A = '<node id="a"><data key="f">1</data><data key="l">x</data></node>\n'
AB = A + A.replace('"a"', '"b"').replace("1", "2").replace("x", "y")
W = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>\n'
EDGE = '<edge source="a" target="b"><data key="w">1</data></edge>\n'


def nodes(text: Any, name: str = "nodes.csv") -> Files:
    return {name: text, "edges.csv": EDGES}


def edges(text: Any, name: str = "edges.csv") -> Files:
    return {"nodes.csv": NODES, name: text}


def nodes_npz(**arrays: Any) -> Files:
    return nodes(arrays, "nodes.npz")


def edges_npz(**arrays: Any) -> Files:
    return edges(arrays, "edges.npz")


def graphml(*parts: str) -> Files:
    return {"g.graphml": "".join(parts)}


def csr(**changes: Any) -> dict[str, Any]:
    whole = {"data": np.ones(4), "indices": [0, 1, 2, 3], "indptr": [0, 1, 2, 3, 4], "shape": (4, 4), "format": b"csr"}
    return {name: value for name, value in (whole | changes).items() if value is not None}


REFUSALS: list[tuple[Files, str]] = [
    # the directory
    ({"readme.txt": ""}, "mygraph: expected one of nodes.csv, nodes.tsv | found 'readme.txt'"),
    ({"nodes.csv": NODES}, "mygraph: expected one of edges.csv | found 'nodes.csv'"),
    (nodes(NODES) | {"nodes.npz": {"x": X}}, "mygraph: 'nodes.csv', 'nodes.npz' are ambiguous"),
    ({"a.graphml": "", "b.graphml": ""}, "mygraph: several graphs, 'a.graphml', 'b.graphml'"),
    (nodes(NODES) | {"a.graphml": ""}, "mygraph: several graphs, 'a.graphml', 'nodes.csv'"),
    # CSV as such
    (nodes(""), "nodes.csv: expected a header"),
    (nodes("id,age,label\n"), "nodes.csv: it has no nodes"),
    (edges("source,target\n"), "edges.csv: it has no edges"),
    (nodes("0,1,x\n1,2,y\n"), "nodes.csv: expected a column 'id', got '0', '1', 'x' | header"),
    (edges("a,b\nb,c\n"), "edges.csv: expected the columns source,target | got 'a', 'b' | header"),
    (nodes(NODES + "e,5\n"), "nodes.csv, line 6: it has 2 cells, but the header has 3"),
    (nodes(NODES + '"e\nf",5,x\ng\n'), "nodes.csv, line 8: it has 1 cells"),
    (nodes(NODES + '"e,5,x\nf,6,x\n'), "nodes.csv, line 6: not a row | quote"),
    (nodes(NODES + "e" * 200_000 + ",5,x\n"), "nodes.csv, line 6: not a row | limit"),
    (nodes(NODES.replace("c,", "é,").encode("latin-1")), "nodes.csv, line 4: not UTF-8"),
    (nodes(NODES.encode("utf-16")), "nodes.csv, line 1: not UTF-8"),
    (nodes(NODES.replace("3", "\0")), "nodes.csv, line 4: it holds a NUL byte"),
    (nodes("id,age,age,label\n"), "nodes.csv, column 'age': two columns have this name"),
    (nodes(",id,age,label\n"), "nodes.csv, column '': an index of pandas"),
    (nodes("Unnamed: 0,id,label\n"), "nodes.csv, column 'Unnamed: 0': an index of pandas"),
    # nodes
    (nodes(NODES.replace("3", "abc")), "line 4, column 'age': expected a number, got 'abc'. Encode text"),
    (nodes(NODES.replace("3", " ")), "nodes.csv, line 4, column 'age': expected a number, but it is empty"),
    (nodes(NODES.replace("3", "NaN")), "nodes.csv, line 4, column 'age': expected a finite number | got nan"),
    (nodes(NODES.replace("3", "-inf")), "nodes.csv, line 4, column 'age': | got -inf"),
    (nodes(NODES.replace("3", "9" * 5000)), "line 4, column 'age': expected a finite number | got inf"),
    (nodes(NODES.replace("3", "1_000")), "line 4, column 'age': expected a number, got '1_000'"),
    (nodes(NODES.replace(",", ";").replace("3", "3,5")), "line 4, column 'age' | decimal point"),
    (nodes("id,label\na,x\nb,y\n"), "nodes.csv: there are no features | degree"),
    (nodes(NODES + " b ,5,x\n"), "line 6, column 'id': the id 'b' is there twice, first in line 3"),
    (nodes(NODES + ",5,x\n"), "nodes.csv, line 6, column 'id': expected the id of a node, but it is empty"),
    # labels
    (nodes("id,age,klass\na,1,x\n"), "nodes.csv: there is no 'label', got 'id', 'age', 'klass'"),
    (nodes("id,age,label\na,1,\n"), "nodes.csv, column 'label': expected at least two classes, got none"),
    (nodes("id,age,label\na,1,x\nb,2,\n"), "nodes.csv, column 'label': expected at least two classes, got 'x'"),
    (nodes("id,age,label\na,1,3\nb,2,1.5\n"), "line 3, column 'label': expected a class | '1.5'. Regression"),
    (nodes(NODES + "e,5,nan\n"), "nodes.csv, line 6, column 'label': got 'nan'. Leave the label"),
    (nodes("id,age,label\na,1,0\nb,2,1\nc,3,-1\n"), "line 4, column 'label': is -1 a class, or no label?"),
    # splits
    (nodes("id,f,label,split\na,1,x,train\nb,1,y,exam\n"), "line 3, column 'split': expected train, val, test"),
    (nodes("id,f,label,split3\na,1,x,\nb,1,y,\nc,1,,test\n"), "line 4, column 'split3': the node is in 'test'"),
    (nodes("id,f,label,split\na,1,x,train\nb,1,y,val\n"), "nodes.csv, column 'split': no node is in 'test'"),
    (nodes("id,f,label\na,1,x\nb,1,y\n"), "nodes.csv: 2 labelled nodes are too few"),
    # edges
    (edges(EDGES + "b,zebra\n"), "edges.csv, line 3, column 'target': there is no node 'zebra'. Add it"),
    (
        nodes(NODES + "anna-2,5,x\n") | {"edges.csv": "from,to\nanna_2,b\n"},
        "edges.csv, line 2, column 'from': there is no node 'anna_2'. Is it 'anna-2'?",
    ),
    (edges(EDGES + "b,\n"), "edges.csv, line 3, column 'target': expected the id of a node, but it is empty"),
    (edges("source,target,weight\na,b,1\nb,c,-2\n"), "edges.csv, line 3, column 'weight': | got -2.0"),
    (edges("source,target,weight\na,b,nan\n"), "edges.csv, line 2, column 'weight': expected a finite number"),
    (edges("source,target,weight\na,b,inf\n"), "edges.csv, line 2, column 'weight' | got inf"),
    (edges("source,target,wieght\na,b,2\n"), "edges.csv, column 'wieght': edges have source, target"),
    # npz
    (nodes(b"hello", "nodes.npz"), "nodes.npz: not an npz archive"),
    (nodes_npz(x=X, y=Y.astype(object)), "nodes.npz, column 'y': it holds Python objects | .astype(str)"),
    (nodes_npz(x=X, train_mask=Y), "nodes.npz, column 'train_mask': not one of"),
    (nodes_npz(y=Y), "nodes.npz: expected the features"),
    (nodes_npz(x=Y, y=Y), "nodes.npz, column 'x': expected shape (nodes, features), got (4,)"),
    (nodes_npz(x=X.astype(str), y=Y), "nodes.npz, column 'x': expected numbers, got <U32"),
    (nodes_npz(x=np.array([[1, 2], [3, np.nan]])), "nodes.npz, row 1 (from 0), column 'x[:, 1]'"),
    (nodes_npz(x=X, y=Y, label=Y), "nodes.npz: both 'label' and 'y'"),
    (nodes_npz(x=X, y=Y[:3]), "nodes.npz, column 'y': expected one entry for each of 4 rows"),
    (nodes_npz(x=X, y=Y - 1), "nodes.npz, row 0 (from 0), column 'y': is -1 a class"),
    (nodes_npz(x=X), "nodes.npz: there is no 'label'"),
    (nodes_npz(**csr(indices=[0, 1, 2, 9], y=Y)), "nodes.npz: not a CSR matrix"),
    (nodes_npz(**csr(format=b"csc", y=Y)), "nodes.npz: expected a CSR matrix | tocsr"),
    (nodes_npz(**csr(indptr=None, y=Y)), "nodes.npz: of a CSR matrix 'indptr' is missing"),
    (nodes_npz(**csr(data=[1, 1, np.nan, 1], y=Y)), "nodes.npz, row 2 (from 0), column '[:, 2]'"),
    (edges_npz(edge_index=np.zeros((5, 2), int)), "edges.npz, column 'edge_index' | (5, 2). Transpose"),
    (edges_npz(edge_index=np.zeros((2, 5))), "edges.npz, column 'edge_index': expected integers"),
    (edges_npz(edge_index=[[0, 1], [1, 9]]), "edges.npz, row 1 (from 0), column 'target' | 0 to 3"),
    (edges_npz(edge_index=[[0], [1]], src=[0], dst=[1]), "edges.npz: expected the edges in one"),
    (
        {"nodes.csv": "id,f,label\n1,1,x\n0,1,y\n", "edges.npz": {"edge_index": [[0], [1]]}},
        "edges.npz: 'edge_index' or a matrix counts the rows",
    ),
    (edges_npz(**csr(shape=(4, 5))), "edges.npz: an adjacency matrix is square, got shape (4, 5)"),
    (edges_npz(src=["a"], dst=["b"], weight=[-1]), "edges.npz, row 0 (from 0), column 'weight'"),
    (edges_npz(src=["a"], dst=["b"], weight=[1, 2]), "edges.npz: expected one weight"),
    # parquet
    (nodes(b"hello", "nodes.parquet"), "nodes.parquet: not a parquet file"),
    (
        nodes({"id": ["a", "b"], "f": [1, None], "label": [0, 1]}, "nodes.parquet"),
        "nodes.parquet, row 1 (from 0), column 'f': expected a number, but it is empty",
    ),
    (
        nodes({"id": ["a"], "f": [[1.0]], "label": [0]}, "nodes.parquet"),
        "nodes.parquet, column 'f': expected numbers, got the type list",
    ),
    (nodes({"id": [b"a"], "label": [0]}, "nodes.parquet"), "nodes.parquet, column 'id': expected strings"),
    (
        nodes({"id": ["a"], "label": [0], "__index_level_0__": [3]}, "nodes.parquet"),
        "nodes.parquet, column '__index_level_0__': an index of pandas",
    ),
    # GraphML
    (graphml('<!DOCTYPE g [<!ENTITY a "aaaa">]>\n', HEAD), "g.graphml, line 1: a DOCTYPE is refused"),
    (graphml(HEAD, GRAPH, AB), "g.graphml, line 6: not well-formed XML"),
    (graphml("<html></html>"), "g.graphml, line 1: expected a GraphML file, its first element is <html>"),
    (graphml(HEAD, "</graphml>"), "g.graphml: it holds no <graph>"),
    (graphml(HEAD, GRAPH, "</graph>\n", GRAPH), "g.graphml, line 5: a second <graph>"),
    (graphml(HEAD, GRAPH, '<node id="a">\n', GRAPH), "g.graphml, line 5: a graph inside a node"),
    (graphml(HEAD, GRAPH, "<hyperedge/>"), "g.graphml, line 4: hyperedges are not supported"),
    (graphml(HEAD, "<graph/>"), "g.graphml, line 3: <graph> has no 'edgedefault'"),
    (graphml(HEAD, GRAPH, '<edge source="a" target="b" directed="false"/>'), "g.graphml, line 4: directed and"),
    (graphml(HEAD, GRAPH, '<node id="a"><data key="z"/>'), "g.graphml, line 4: <data> has the key 'z'"),
    (graphml(HEAD, GRAPH, "<node/>"), "g.graphml, line 4: <node> has no 'id'"),
    (graphml(HEAD, GRAPH, AB.replace("2", "old")), "g.graphml, line 5, attribute 'age': | got 'old'"),
    (graphml(HEAD, GRAPH, '<node id="a"/>'), "g.graphml, line 4, attribute 'age': | it is empty"),
    (
        graphml(HEAD, GRAPH, AB, '<edge source="a"\ntarget="c"/></graph></graphml>'),
        "g.graphml, line 6, attribute 'target': there is no node 'c'",
    ),
    (
        graphml(HEAD, W, GRAPH, AB, EDGE, '<edge source="b" target="b"/></graph></graphml>'),
        "g.graphml, line 8, attribute 'weight': expected a number, but it is empty",
    ),
    (graphml(HEAD, W, W.replace('"w"', '"v"'), GRAPH), "g.graphml, attribute 'weight': two columns have this name"),
    (graphml('<?xml version="1.0" encoding="klingon"?>', HEAD), "g.graphml, line 1: unknown encoding"),
]


def put(directory: Path, files: Files) -> Path:
    directory.mkdir()
    for name, content in files.items():
        file = directory / name
        if isinstance(content, dict) and file.suffix == ".npz":
            np.savez(file, **content)
        elif isinstance(content, dict):
            pyarrow.parquet.write_table(pyarrow.table(content), file)
        else:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return directory


@pytest.mark.parametrize(("files", "expected"), REFUSALS, ids=[expected for _, expected in REFUSALS])
def test_refused_with_its_place_and_reason(tmp_path: Path, files: Files, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        read_graph(put(tmp_path / "mygraph", files))
    message = str(caught.value)
    for part in expected.split(" | "):
        assert part in message
    assert message.startswith(str(tmp_path / "mygraph"))
    assert "\n" not in message
    assert len(message) < 400


def test_what_the_table_of_refusals_varies_is_accepted(tmp_path: Path) -> None:
    fractions = (0.5, 0.25, 0.25)
    for number, files in enumerate((nodes(NODES), nodes_npz(**csr(y=Y, id=list("abcd"))), edges_npz(**csr()))):
        assert read_graph(put(tmp_path / str(number), files), fractions=fractions).classes
    whole = graphml(HEAD, W, GRAPH, AB, EDGE, "</graph></graphml>")
    assert read_graph(put(tmp_path / "g", whole), require_labels=False).classes == ("x", "y")


def test_a_file_or_directory_that_is_not_there_and_one_that_is_neither(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: there is no such file or directory"):
        read_graph(tmp_path / "nowhere")
    file = put(tmp_path / "mygraph", nodes(NODES)) / "nodes.csv"
    with pytest.raises(DataError, match=r"nodes\.csv: expected a GraphML file, or the directory"):
        read_graph(file)


def test_a_graphml_that_cannot_be_opened_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "g.graphml").mkdir()
    with pytest.raises(DataError, match=r"g\.graphml: it cannot be read \(Is a directory\)"):
        read_graph(tmp_path)


def test_parquet_without_pyarrow_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    path = put(tmp_path / "mygraph", nodes({"id": ["a"]}, "nodes.parquet"))
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(DataError, match=r"nodes\.parquet: parquet needs pyarrow\. Install it: pip install pyarrow"):
        read_graph(path)


def test_labels_that_are_not_required_are_still_checked(tmp_path: Path) -> None:
    path = put(tmp_path / "mygraph", nodes(NODES + "e,5,nan\n"))
    with pytest.raises(DataError, match="line 6, column 'label'"):
        read_graph(path, require_labels=False)


def test_no_split_at_all_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`num_random` must be at least 1"):
        read_graph(put(tmp_path / "mygraph", nodes(NODES)), num_random=0)
