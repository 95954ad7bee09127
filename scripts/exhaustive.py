#!/usr/bin/env python3
"""By how much the simulated choice is slower than the best of all plans, on workloads that nothing was fitted to.

    scripts/exhaustive.py FLUX out/exhaustive.json [--seconds 230]     runs `flux tune` over all candidates, and evaluates
    scripts/exhaustive.py out/exhaustive.json                          evaluates a file
    scripts/exhaustive.py out/exhaustive.json --model FLUX             the same by what this flux would choose and time now

One GPU plays one rank against pinned host memory (flux tune --mirror). Of each workload: the model's untuned choice, an open
plan by the operators' rules, and what tuning takes (the fastest of the eight that are simulated best, and of those that do not
fuse), each against the fastest of all candidates. Bars of the planner: 5 % untuned, 1 % tuned. Workloads that the seconds
do not reach are left out, and said; a file that is there is gone on with.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

# op, m, n, k, ranks: Llama-3 8B and 405B, Qwen2 72B, Qwen3 32B, DeepSeek-V3, a language model's head. None of these shapes is
# in the files that docs/simulator.md names.
WORKLOADS = [
    ("ag_gemm", 2048, 28672, 4096, 8), ("gemm_rs", 2048, 4096, 14336, 8),
    ("ag_gemm", 512, 28672, 4096, 8), ("gemm_rs", 512, 4096, 14336, 8),
    ("ag_gemm", 2048, 6144, 4096, 8), ("gemm_rs", 2048, 4096, 4096, 8),
    ("ag_gemm", 1024, 51200, 5120, 8), ("gemm_rs", 1024, 5120, 25600, 8),
    ("ag_gemm", 4096, 24576, 1536, 8), ("gemm_rs", 2048, 7168, 16384, 8),
    ("ag_gemm", 1024, 59136, 8192, 8), ("gemm_rs", 1024, 8192, 29568, 8),
    ("ag_gemm", 512, 106496, 16384, 8), ("gemm_rs", 512, 16384, 53248, 8),
    ("ag_gemm", 1024, 18432, 16384, 8), ("gemm_rs", 1024, 16384, 16384, 8),
    ("ag_gemm", 1024, 28672, 4096, 4), ("gemm_rs", 1024, 4096, 14336, 4),
    ("ag_gemm", 256, 128256, 8192, 8), ("gemm_rs", 128, 5120, 25600, 8),
]
TUNED = 8  # plans that flux tune times unless told otherwise


def run(flux, path, seconds):
    """Appends what is missing to the file, one workload after another."""
    done = json.load(open(path)) if os.path.exists(path) else []
    begin = time.monotonic()
    for op, m, n, k, ranks in WORKLOADS:
        if any([r["op"], r["m"], r["n"], r["k"], r["tp"]] == [op, m, n, k, ranks] for r in done):
            continue
        if time.monotonic() - begin > seconds:
            break
        with tempfile.TemporaryDirectory() as folder:
            command = [flux, "tune", op, "--m", str(m), "--n", str(n), "--k", str(k), "--ranks", str(ranks), "--mirror",
                       "--candidates", "1000", "--rounds", "3", "--budget-seconds", "8", "--json", "--cache",
                       os.path.join(folder, "plans.json")]
            print(" ".join(command[1:10]), f"at {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if ended.returncode != 0:
            print(f"it ended with {ended.returncode}; left out", file=sys.stderr)
            continue
        done.append(json.loads(ended.stdout))
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path + ".part", "w") as file:
            json.dump(done, file, indent=1)
        os.replace(path + ".part", path)
    return done


def excesses(result):
    """Of the untuned choice, of an open plan, of the tuned one: measured over the best of all, minus 1."""
    timed = [t for t in result["timed"] if t["measured_us"]]
    best = min(t["measured_us"] for t in timed)
    over = lambda t: t["measured_us"] / best - 1
    untuned = next((t for t in timed if t["plan"] == result["untuned_plan"]), None)
    opened = next((t for t in timed if t["plan"] == result["open_plan"]), None)
    ranked = sorted(timed, key=lambda t: t["simulated_us"])
    apart = [t for t in ranked if t["plan"].startswith("fused=no")]
    tried = [t for t in timed if t["plan"] in result.get("tuned_plans", [])] or ranked[:TUNED] + apart[:1]
    tuned = min(tried, key=lambda t: t["measured_us"])
    return len(timed), best, [over(t) if t else None for t in (untuned, opened, tuned)]


def simulated_again(result, flux, machine):
    """The result with the times that `flux plan` simulates now, its choice, and the plans that flux tune would time."""
    problem = [flux, "plan", result["op"], "--m", str(result["m"]), "--n", str(result["n"]), "--k", str(result["k"]),
               "--tp", str(result["tp"]), "--dtype", result["dtype"], "--machine", machine, "--json"]
    plans = [word for t in result["timed"] for word in ("--plan", t["plan"])]
    ask = lambda more: json.loads(subprocess.run(problem + more, check=True, stdout=subprocess.PIPE, text=True).stdout)
    again = {c["plan"]: c.get("total_us") for c in ask(plans)["candidates"] if "library" not in c.get("out", "")}
    timed = [{**t, "simulated_us": again.get(t["plan"]) or t["simulated_us"]} for t in result["timed"]]
    chosen = ask([])
    return {**result, "timed": timed, "untuned_plan": chosen["plan"], "tuned_plans": chosen["tuned"]}


def evaluate(results):
    percent = lambda x: "-" if x is None else f"{100 * x:.1f} %"
    print("| op | m | n | k | ranks | plans | best us | untuned | open | tuned | the best plan |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    columns = [[], [], []]
    for r in results:
        count, best, over = excesses(r)
        for column, x in zip(columns, over):
            column.append(x)
        short = " ".join(w for w, usual in zip(r["plan"].split(), r["open_plan"].split()) if w != usual) or "open"
        print(f"| {r['op']} | {r['m']} | {r['n']} | {r['k']} | {r['tp']} | {count} | {best:.0f} | "
              f"{' | '.join(map(percent, over))} | {short} |")
    for name, bar, column in zip(("untuned", "open", "tuned"), (0.05, 0.05, 0.01), columns):
        known = [x for x in column if x is not None]
        if known:
            print(f"{name}: {sum(x <= bar for x in known)} of {len(known)} within {percent(bar)}, the worst {percent(max(known))}")
    if len(results) < len(WORKLOADS):
        print(f"{len(WORKLOADS) - len(results)} workloads are not measured yet")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seconds", type=float, default=230, help="no workload begins later")
    parser.add_argument("--model", metavar="FLUX", help="simulates the plans of the file anew, and chooses anew")
    parser.add_argument("--machine", default="h200-pcie", help="whose numbers --model goes by")
    given = parser.parse_args()
    if len(given.files) == 2:
        results = run(*given.files, given.seconds)
    else:
        results = json.load(open(given.files[0]))
    if given.model:
        results = [simulated_again(r, given.model, given.machine) for r in results]
        errors = sorted(abs(t["simulated_us"] / t["measured_us"] - 1) for r in results for t in r["timed"]
                        if t["measured_us"] and "transport=remote" not in t["plan"])
        print(f"{len(errors)} plans, without transport=remote: median error {100 * errors[len(errors) // 2]:.1f} %, "
              f"90th percentile {100 * errors[len(errors) * 9 // 10]:.1f} %")
    evaluate(results)


if __name__ == "__main__":
    main()
