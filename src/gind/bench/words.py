"""Numbers of a report in words, for the terminal and for pages."""

from gind.bench.schema import CaseEntry, Profile, Report
from gind.text import plural

__all__ = ["bytes_", "case_title", "machine_lines", "profile_rows", "profile_title", "rate", "seconds"]


def seconds(value: float) -> str:
    """1.23 s, 45.6 ms, 789 µs."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if value * factor >= 0.9995:
            return f"{_three(value * factor)} {unit}"
    return f"{_three(value * 1e6)} µs"


def bytes_(value: int | None) -> str:
    """1.2 MiB; nothing for what was not measured."""
    if value is None:
        return "-"
    return f"{value / 2**20:.1f} MiB" if value < 2**30 else f"{value / 2**30:.2f} GiB"


def rate(value: float, unit: str) -> str:
    """12.3 GB/s."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= factor:
            return f"{_three(value / factor)} {prefix}{unit}"
    return f"{_three(value)} {unit}"


def case_title(case: CaseEntry) -> str:
    """The graph and its sizes; a generated one has only the shape of its dataset."""
    what = "shape of " if case["generated"] else ""
    sizes = f"{case['nodes']:,} nodes, {case['edges']:,} edges, {case['channels']:,} channels"
    return f"{what}{case['name']}: {sizes}"


def machine_lines(report: Report) -> list[str]:
    """Where and how it was measured."""
    machine = report["machine"]
    caches = ", ".join(f"{level} {size}" for level, size in machine["caches"].items()) or "caches unknown"
    memory = "" if machine["memory"] is None else f", {machine['memory'] / 2**30:.1f} GiB of memory"
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    load = "" if machine["load"] is None else f", load before the start {machine['load']:.1f}"
    return [
        f"{machine['processor']}: {plural(machine['cores'], 'core')}, {caches}{memory}",
        f"{machine['system']}; {versions}",
        f"{plural(machine['threads'], 'thread')}, best of up to {plural(report['rounds'], 'round')}{load}",
    ]


def profile_title(profile: Profile) -> str:
    """What was profiled, and on whom."""
    before, after = profile["before"]["name"], profile["after"]["name"]
    return f"where the {profile['measure']} goes, before ({before}) and after ({after})"


def profile_rows(profile: Profile) -> list[list[str]]:
    """Titles, then for each group milliseconds and share, before and after; groups without any time are left out."""
    runs = (profile["before"], profile["after"])
    rows = [["part", "before, ms", "share", "after, ms", "share"]]
    for group in dict.fromkeys(name for run in runs for name in run["groups"]):
        taken = [(run["groups"].get(group, 0.0), run["seconds"]) for run in runs]
        if any(part for part, _ in taken):
            rows.append([group, *(cell for part, whole in taken for cell in _part(part, whole))])
    return [*rows, ["whole", *(cell for run in runs for cell in _part(run["seconds"], run["seconds"]))]]


def _part(part: float, whole: float) -> tuple[str, str]:
    return (f"{1e3 * part:,.1f}", f"{part / whole:.1%}") if part else ("-", "-")


def _three(value: float) -> str:
    """Three digits."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
