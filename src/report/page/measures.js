// What is drawn against m: where it comes from, how it is written, and how far its axis reaches.

const fromNothing = (low, high) => [0, high];
const measures = [
  {name: "efficiency", short: "E", title: "E, overlap efficiency", unit: "1: all hidden · 0: nothing gained",
    of: row => row.efficiency, text: value => fixed(value, 2), rules: [0, 1],
    range: (low, high) => [Math.max(Math.min(low, 0), -1), Math.max(high, 1)]},
  {name: "over_floor", short: "× floor", title: "Total ÷ floor",
    unit: "1: as fast as the longer of GEMM and exchange",
    of: row => row.over_floor, text: value => fixed(value, 2), rules: [1],
    range: (low, high) => [Math.min(low, 1), Math.max(Math.min(high, 4), 1.1)]},
  {name: "over_gemm", short: "÷ GEMM", title: "Total ÷ fastest GEMM", unit: "1: as fast as the best",
    of: row => (row.op === "gemm" ? totalOverGemm(row) : null), text: value => fixed(value, 3), rules: [1],
    range: (low, high) => [Math.min(low, 0.99), Math.max(high, 1.05)]},
  {name: "tflops", short: "TFLOP/s", title: "Speed of one rank", unit: "TFLOP/s",
    of: row => row.tflops, text: value => significant(value), rules: [0], range: fromNothing},
  {name: "link_gbps", short: "GB/s", title: "Link, exchange alone", unit: "GB/s", shared: true,
    of: row => row.link_gbps, text: value => significant(value), rules: [0], range: fromNothing},
  {name: "read_gbps", short: "read GB/s", title: "Memory read", unit: "GB/s",
    of: row => row.read_gbps, text: value => significant(value), rules: [0], range: fromNothing},
];

/** The points of each line; ablations are left to the bars. A shared measure is that of the problem: one line. */
function linesOf(series, measure) {
  const own = series.rows.filter(row => row.variant === "" && measure.of(row) !== null).sort((a, b) => a.m - b.m);
  if (measure.shared) {
    const once = new Map(own.map(row => [row.m, row]));
    return once.size ? [{method: null, rows: [...once.values()]}] : [];
  }
  return series.methods.map(method => ({method, rows: own.filter(row => row.method === method)}))
    .filter(line => line.rows.length);
}

/** What has a value, if there is more than one m to draw it against. */
function drawableMeasures(series) {
  return series.ms.length < 2 ? [] : measures.filter(measure => linesOf(series, measure).length);
}
