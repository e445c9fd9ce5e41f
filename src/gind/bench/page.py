"""Tables of reports in Markdown, put into a page between two marks; the same reports give the same bytes."""

from collections.abc import Sequence

from gind.bench.case import BenchError
from gind.bench.schema import CaseEntry, Report
from gind.bench.words import bytes_, case_title, machine_lines, profile_rows, profile_title, rate, seconds
from gind.text import plural, table

__all__ = ["BEGIN", "END", "embed", "tables"]

BEGIN, END = "<!-- gind bench -->", "<!-- end of gind bench -->"


def embed(page: str, reports: Sequence[Report]) -> str:
    """The page with these reports in place of what stands between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"The page has no lines {BEGIN} and {END}, between which tables could be put.")
    return f"{before}{BEGIN}\n\n{tables(reports)}\n{END}{after}"


def tables(reports: Sequence[Report]) -> str:
    """All tables of all reports."""
    if not reports:
        return "No measurement is kept yet.\n"
    return "\n".join(_report(report) for report in reports)


def _report(report: Report) -> str:
    lines = [f"### {report['machine']['processor']}, {plural(report['machine']['threads'], 'thread')}", ""]
    lines += [f"- {line}" for line in machine_lines(report)]
    for case in report["cases"]:
        lines += ["", f"#### {case_title(case)}", "", *_case(case)]
    lines += ["", "#### Limits of the machine", "", *_limits(report)]
    lines += ["", "#### Flux on one thread", "", *_flux(report)]
    lines += ["", "#### One iteration while one size grows", "", *_scaling(report)]
    return "\n".join(lines) + "\n"


def _case(case: CaseEntry) -> list[str]:
    rows = [
        [group["measure"], one["name"], seconds(one["seconds"]), f"{one['ratio']:.2f}", bytes_(one["peak"])]
        for group in case["groups"]
        for one in group["contenders"]
    ]
    lines = table(["measure", "contender", "best", "ratio", "peak memory"], rows, left=2)
    if "profile" in case:
        title, (titles, *parts) = profile_title(case["profile"]), profile_rows(case["profile"])
        lines += ["", f"{title[0].upper()}{title[1:]}:", "", *table(titles, parts)]
    return lines


def _limits(report: Report) -> list[str]:
    peaks = report["peaks"]
    rows = [
        ["copy", rate(peaks["copy"], "B/s")],
        ["triad", rate(peaks["triad"], "B/s")],
        ["triad, one thread", rate(peaks["triad_one_thread"], "B/s")],
        ["sgemm", rate(peaks["sgemm"], "flop/s")],
        ["tanh, one thread", rate(peaks["tanh"], "/s")],
        ["arithmetic of an edge, one thread", rate(peaks["edge"], "/s")],
    ]
    return table(["limit", "measured"], rows)


def _flux(report: Report) -> list[str]:
    titles = ["graph", "best", "edges × channels", "of tanh", "of compute", "of bandwidth", "of bandwidth, uncached"]
    rows = []
    for case in report["cases"]:
        flux = case["flux"]
        shares = (flux["of_tanh"], flux["of_compute"], flux["of_bandwidth"], flux["of_bandwidth_uncached"])
        rows.append([case["name"], seconds(flux["seconds"]), rate(flux["rate"], "/s"), *(f"{s:.0%}" for s in shares)])
    return table(titles, rows)


def _scaling(report: Report) -> list[str]:
    rows = []
    for curve in report["scaling"]:
        for point in curve["points"]:
            sizes = [f"{point['nodes']:,}", f"{point['edges']:,}", f"{point['channels']:,}"]
            rows.append([curve["variable"], *sizes, seconds(point["seconds"]), f"{curve['slope']:.2f}"])
    return table(["growing", "nodes", "edges", "channels", "best", "slope"], rows)
