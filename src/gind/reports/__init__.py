"""From reports to tables and figures beside those of the paper."""

from gind.reports.collect import Collection, Convergence, Row, Statistic, collect
from gind.reports.compare import Comparison, Entry, Line, compare
from gind.reports.ledger import Item, Place, open_item, open_ledger
from gind.reports.ledger_page import item_page, results_page
from gind.reports.paper import Paper, PaperTable, PaperValue, load_paper
from gind.reports.read import Report, ReportError, read_report
from gind.reports.remarks import Remarks, read_remarks
from gind.reports.tables import sheet_page

__all__ = [
    "Collection",
    "Comparison",
    "Convergence",
    "Entry",
    "Item",
    "Line",
    "Paper",
    "PaperTable",
    "PaperValue",
    "Place",
    "Remarks",
    "Report",
    "ReportError",
    "Row",
    "Statistic",
    "collect",
    "compare",
    "item_page",
    "load_paper",
    "open_item",
    "open_ledger",
    "read_remarks",
    "read_report",
    "results_page",
    "sheet_page",
]
