"""From the reports of a sheet to tables beside those of the paper."""

from gind.reports.collect import Collection, Convergence, Row, Statistic, collect
from gind.reports.compare import Comparison, Entry, Line, compare
from gind.reports.paper import Paper, PaperTable, PaperValue, load_paper
from gind.reports.read import Report, ReportError, read_report
from gind.reports.remarks import Remarks, read_remarks
from gind.reports.tables import sheet_page

__all__ = [
    "Collection",
    "Comparison",
    "Convergence",
    "Entry",
    "Line",
    "Paper",
    "PaperTable",
    "PaperValue",
    "Remarks",
    "Report",
    "ReportError",
    "Row",
    "Statistic",
    "collect",
    "compare",
    "load_paper",
    "read_remarks",
    "read_report",
    "sheet_page",
]
