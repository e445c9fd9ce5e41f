"""The machine that numbers were measured on."""

import os
import platform
from pathlib import Path

from gind.bench.schema import Machine
from gind.experiments.made_with import versions

__all__ = ["describe"]


def describe(threads: int) -> Machine:
    """Processor, caches, memory, versions, and how busy it was."""
    found = versions()
    found.pop("threads", None)
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "caches": _caches(),
        "memory": _memory(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "threads": threads,
        "system": f"{platform.system()} {platform.release()}",
        "versions": found,
    }


def _processor() -> str:
    text = _read(Path("/proc/cpuinfo"))
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    """Sizes of the data caches of the first core by level."""
    caches = {}
    for place in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read(place / name).strip() for name in ("level", "type", "size"))
        if level and size and kind != "Instruction":
            caches[f"L{level}"] = size
    return caches


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
