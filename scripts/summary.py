"""summary.py BUILD...: counts the test cases of one or more builds from the JUnit files in BUILD/results.

Prints how many kernels were compiled for which chip, how many GPU tests were skipped, and one closing line. Exit code 1
if anything failed or nothing ran.
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

Counts = collections.Counter


def cases(file: pathlib.Path) -> Counts:
    """The cases of one program, which wrote `file` itself."""
    counts = Counts()
    for case in xml.parse(file).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            counts["skipped"] += 1
        else:
            counts["passed"] += 1
    return counts


def programs(build: pathlib.Path) -> dict[str, Counts]:
    """The cases of each program that ctest ran. One that leaves no file, an example say, is one case."""
    found = {}
    for run in xml.parse(build / "results" / "ctest.xml").iter("testcase"):
        name, ended_well = run.get("name"), run.get("status") == "run"
        file = build / "results" / f"{name}.xml"
        try:
            counts = cases(file)
        except (FileNotFoundError, xml.ParseError):  # the program has no cases, or did not live to write them
            counts = Counts(passed=1) if ended_well else Counts()
            if run.get("status") in ("disabled", "skipped"):
                ended_well, counts = True, Counts(skipped=1)
        if not ended_well and counts["failed"] == 0:
            counts["failed"] += 1
        found[name] = counts
    return found


def kernels(builds: list[pathlib.Path]) -> Counts:
    """Entry functions by chip, as ptxas reported them."""
    compiled = Counts()
    for build in builds:
        for report in build.rglob("*.ptxas"):
            if not report.with_suffix("").exists():  # the object is gone: a source that was renamed
                continue
            compiled.update(re.findall(r"Compiling entry function '.*' for '(\w+)'", report.read_text()))
    return compiled


def main() -> int:
    builds = [pathlib.Path(argument) for argument in sys.argv[1:]]
    total, gpu_skipped = Counts(), 0
    for build in builds:
        for name, counts in programs(build).items():
            total += counts
            gpu_skipped += counts["skipped"] if name == "gpu" else 0
            if counts["failed"]:
                print(f"FAILED in {build}: {name} ({counts['failed']} of {sum(counts.values())} cases)")
    compiled = kernels(builds)
    chips = ", ".join(f"{count} for {chip}" for chip, count in sorted(compiled.items()))
    print(f"kernels compiled: {sum(compiled.values())}" + (f" ({chips})" if chips else ""))
    print(f"GPU tests skipped: {gpu_skipped}")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
