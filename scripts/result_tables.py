#!/usr/bin/env python3
"""result_tables.py FILE: the tables of docs/results.md for a result file of the core suite, as Markdown."""

import json
import sys

PARTS = ("gemm", "fusion", "head", "traffic", "sum", "tail")


def line(cells):
    return "| " + " | ".join(cells) + " |"


def table(titles, lines):
    return "\n".join([line(titles), "|" + "---|" * len(titles), *map(line, lines)])


def own_rows(rows, timing, method):
    """By workload and m, what no plan forced."""
    return {(row["workload"], row["m"]): row for row in rows
            if row["timing"] == timing and row["cache"] == "warm" and row["method"] == method and row["variant"] == ""}


def core_table(rows, timing):
    """GEMM, comm, one after the other, chunked where it was measured, FLUX; total / floor, E."""
    flux, none, chunked = (own_rows(rows, timing, method) for method in ("flux", "none", "chunked"))
    lines = []
    for (workload, m), row in flux.items():
        beside = [none, chunked] if chunked else [none]
        times = [row["gemm_us"], row["comm_us"], *(by[workload, m]["total_us"] for by in beside), row["total_us"]]
        lines.append([workload, str(m), *(f"{time:.0f}" for time in times),
                      f"{row['total_us'] / row['floor_us']:.3f}", f"{row['efficiency']:.2f}"])
    titles = [timing, "m", "GEMM", "comm", "one after the other", *["chunked"] * bool(chunked), "FLUX", "total / floor",
              "E"]
    return table(titles, lines)


def budget_table(rows):
    """Microseconds above the floor; GEMM and fusion in brackets where the communication hides them."""
    lines = []
    for (workload, m), row in own_rows(rows, "eager", "flux").items():
        if row.get("budget_head_us") is None:
            continue
        hidden = row["comm_us"] >= row["gemm_us"]
        cells = [f"{row[f'budget_{part}_us']:.0f}" for part in PARTS]
        cells[:2] = [f"({cell})" if hidden else cell for cell in cells[:2]]
        lines.append([workload, str(m), f"{row['floor_us']:.0f}", f"{row['total_us']:.0f}", *cells])
    return table(["budget", "m", "floor", "total", *PARTS], lines)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    print(core_table(rows, "graph"), core_table(rows, "eager"), budget_table(rows), sep="\n\n")


if __name__ == "__main__":
    main()
