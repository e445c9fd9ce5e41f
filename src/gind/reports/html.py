"""The ledger as one HTML file: the Markdown page with its figures inside, no network, light and dark."""

import html
import io
import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from matplotlib.figure import Figure

from gind.reports.figures import draw, save_svg
from gind.reports.ledger import Item
from gind.reports.ledger_page import anchor, results_page

__all__ = ["html_page"]

_STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --back: #ffffff; --soft: #f3f5f7; --line: #d5dae0; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e7ec; --back: #14171b; --soft: #1f242a; --line: #3a424c; --link: #7db8f5; }
}
body { color: var(--text); background: var(--back); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto;
  padding: 1.5rem; max-width: 80rem; }
a { color: var(--link); }
h1 { font-size: 1.7rem; }
h2 { font-size: 1.3rem; margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .55rem; border-bottom: 1px solid var(--line); white-space: nowrap; text-align: left; }
td:not([style]) { white-space: normal; min-width: 7rem; max-width: 26rem; }
th { background: var(--soft); cursor: pointer; }
tbody tr:hover { background: var(--soft); }
code { background: var(--soft); padding: .1em .3em; border-radius: 3px; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; fill: currentColor; }
summary { cursor: pointer; color: var(--link); }
.missing { opacity: .5; font-style: italic; }
#filter { font: inherit; color: inherit; background: var(--soft); border: 1px solid var(--line); border-radius: 4px;
  padding: .3rem .6rem; width: 22rem; max-width: 100%; }
@media print { #filter { display: none; } }
"""

_SCRIPT = """
document.querySelectorAll("th").forEach(head => head.addEventListener("click", () => {
  const body = head.closest("table").tBodies[0], place = head.cellIndex, rows = [...body.rows];
  const up = head.dataset.up !== "1"; head.dataset.up = up ? "1" : "0";
  const key = row => { const text = row.cells[place].textContent, number = parseFloat(text.replace(/,/g, ""));
    return Number.isNaN(number) ? text : number; };
  rows.sort((a, b) => { const x = key(a), y = key(b);
    const order = typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === "number" ? -1 : 1;
    return up ? order : -order; });
  rows.forEach(row => body.append(row));
}));
document.getElementById("filter").addEventListener("input", event => {
  const word = event.target.value.toLowerCase(), has = part => part.textContent.toLowerCase().includes(word);
  document.querySelectorAll("table").forEach(table => {
    const rows = [...table.tBodies[0].rows];
    // the name of a column keeps its table, and the contents of the page stay
    const named = [...table.tHead.rows[0].cells].some(cell => word && cell.textContent.toLowerCase() === word);
    const whole = named || table.querySelector("a[href^='#']");
    rows.forEach(row => row.style.display = whole || has(row) ? "" : "none");
  });
});
"""


def html_page(items: Sequence[Item]) -> str:
    """One file with everything in it; a click on the head of a column sorts, the field above filters rows."""
    figures = {item.name: _svg(figure, item.name) for item in items if (figure := draw(item)) is not None}
    page = results_page(items, {name: f"#{name}" for name in figures})
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(page)
    body = re.sub(r'<p><img src="#([^"]*)"[^>]*></p>', lambda found: f"<figure>{figures[found[1]]}</figure>", body)
    for item in items:
        title = html.escape(item.title)
        body = body.replace(f"<h2>{title}</h2>", f'<h2 id="{anchor(item.title)}">{title}</h2>')
    body = body.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    body = re.sub(r"(<td[^>]*>)missing", r'\1<span class="missing">missing</span>', body)
    field = '<p><input id="filter" type="search" placeholder="show rows with, such as texas"></p>'
    body = body.replace("</h1>", f"</h1>\n{field}", 1)
    # pages that lie beside the Markdown are not beside this file
    body = re.sub(r'<a href="[^"#][^"]*\.md">([^<]*)</a>', r"\1", body)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Every table and figure of the paper</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _svg(figure: Figure, salt: str) -> str:
    """A figure inside the page: no background, and black becomes the color of the text."""
    figure.patch.set_alpha(0)
    for axis in figure.axes:
        axis.patch.set_alpha(0)
    file = io.StringIO()
    save_svg(figure, file, salt)
    text = file.getvalue()
    text = text[text.index("<svg") :].replace("#000000", "currentColor")
    return re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
