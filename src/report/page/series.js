// The rows, and what belongs together: a series is one workload on one machine, in one setting, over m.

const data = JSON.parse(document.getElementById("data").textContent);
const rows = data.rows.map((cells, index) => {
  const row = {index};
  data.fields.forEach((field, i) => { row[field] = cells[i]; });
  return row;
});

const operations = {
  gemm: "GEMM", ag_gemm: "AllGather + GEMM", gemm_rs: "GEMM + ReduceScatter", gemm_ar: "GEMM + AllReduce",
  layer: "whole layer", model: "whole model",
};
const operationOf = row => operations[row.op] || row.op;

const sharedFields = ["file", "workload", "op", "n", "k", "tp", "dtype", "weight", "epilogue", "world", "nodes", "link",
  "duplex", "incoming", "timing", "cache", "phase"];

/** Series in the order of their first rows; each has its rows by m, and the values of m in order. */
function seriesOf(chosen) {
  const found = new Map();
  for (const row of chosen) {
    const key = JSON.stringify(sharedFields.map(field => row[field]));
    if (!found.has(key)) found.set(key, {first: row, rows: new Map()});
    found.get(key).rows.set(JSON.stringify([row.m, row.method, row.variant]), row);  // the last one counts
  }
  return [...found.values()].map(({first, rows: unique}) => {
    const list = [...unique.values()];
    return {
      first, id: `series-${first.index}`, rows: list,
      ms: [...new Set(list.map(row => row.m))].sort((a, b) => a - b),
      methods: sortMethods(new Set(list.map(row => row.method))),
      exchanges: list.some(row => row.ect_us !== null),
    };
  });
}

/** Rows of one m, methods in their order and the plan's own choice before what was forced. */
function rowsAt(series, m) {
  return series.rows.filter(row => row.m === m).sort((a, b) =>
    series.methods.indexOf(a.method) - series.methods.indexOf(b.method) || a.variant.localeCompare(b.variant));
}

/** What all rows of a series share, in words. */
function settingOf(row) {
  const parts = [];
  if (row.n || row.k) parts.push(`n ${fixed(row.n, 0)}`, `k ${fixed(row.k, 0)}`);
  parts.push(plural(row.tp, "rank"), row.dtype, `weight ${row.weight}`);
  if (row.epilogue !== "none") parts.push(row.epilogue.replaceAll("_", " + "));
  const ways = row.duplex ? ", both ways" : "";
  if (row.world !== "single") parts.push(`${row.world.replaceAll("_", " ")} over ${row.link}${ways}`);
  if (row.incoming) parts.push(`incoming by ${row.incoming}`);
  if (row.nodes > 1) parts.push(plural(row.nodes, "node"));
  parts.push(row.timing === "graph" ? "CUDA graph" : row.timing, `${row.cache} cache`);
  if (row.phase) parts.push(row.phase);
  return parts.join(" · ");
}

function machineOf(machine) {
  if (machine.gpu) return `${machine.gpus} × ${machine.gpu}`;
  return (machine.cores ? `${plural(machine.cores, "core")} of ` : "") + (machine.cpu || "an unknown CPU");
}

const totalOverGemm = row => (row.gemm_us > 0 ? row.total_us / row.gemm_us : null);

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
