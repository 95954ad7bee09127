// Stacked bars, a group for each m: GEMM in grey, ECT in the colour of its method. A bar shorter than its GEMM ends
// early, and a dashed frame shows what is missing.

const barLook = {height: 13, line: 19, tall: 33, head: 26, gap: 8, foot: 40};

/** The numbers beside a bar, where there is room. */
const barColumns = [
  {title: "total", width: 78, text: row => timeLike(row.total_us, row.gemm_us || row.total_us), kind: "total"},
  {title: "ECT", width: 78, text: row => (row.op === "gemm" ? none : timeLike(row.ect_us, row.gemm_us)), kind: "ect"},
  {title: "E", width: 46, text: row => fixed(row.efficiency, 2), kind: "efficiency"},
  {title: "× floor", width: 54, text: row => fixed(row.over_floor, 2), kind: "over-floor"},
  {title: "TFLOP/s", width: 60, text: row => significant(row.tflops), kind: "tflops"},
];

/** What of `groups` can be drawn: relative to the GEMM only if every row has one. */
function barScale(groups, relative) {
  const all = groups.flatMap(group => group.rows);
  const times = relative && all.every(row => row.gemm_us > 0);
  const unit = timeUnit(Math.max(...all.map(row => row.total_us)));
  const of = (row, us) => (times ? us / row.gemm_us : us / unit.us);
  const most = Math.max(...all.map(row => Math.max(of(row, row.p90_us), of(row, row.total_us), of(row, row.floor_us || 0), times ? 1 : 0)));
  return {of, most, title: times ? "time, in multiples of GEMM alone" : `time (${unit.name})`};
}

function barTitle(row) {
  const parts = [`${labelOf(row)}, m ${row.m}: ${time(row.total_us)} (10th to 90th percentile ${time(row.p10_us)} to ${time(row.p90_us)})`];
  if (row.gemm_us) parts.push(`GEMM alone ${time(row.gemm_us)}${row.gemm_by ? ` by ${row.gemm_by}` : ""}`);
  if (row.ect_us !== null && row.op !== "gemm") parts.push(`ECT ${time(row.ect_us)}`);
  if (row.efficiency !== null) parts.push(`E ${fixed(row.efficiency, 3)}`);
  if (row.over_floor !== null) parts.push(`${fixed(row.over_floor, 3)} × floor`);
  if (row.plan) parts.push(`plan: ${row.plan}`);
  return parts.join("\n");
}

function addBar(chart, row, x, y, of) {
  const end = x(of(row, row.total_us)), start = x(0);
  const rect = (from, to, attributes) => svg("rect", {x: from.toFixed(1), y, width: Math.max(to - from, 0).toFixed(1), height: barLook.height, ...attributes});
  const bar = svg("g", {class: "bar", "data-row": row.index}, svg("title", {}, barTitle(row)));
  if (row.gemm_us && row.op !== "gemm") {
    const gemm = x(of(row, row.gemm_us));
    bar.append(rect(start, Math.min(gemm, end), {class: "gemm"}));
    if (end > gemm) bar.append(rect(gemm, end, {fill: fillOf(row.method), class: "ect"}));
    else bar.append(rect(end, gemm, {class: "saved", style: `--colour:${colourOf(row.method)}`}));
  } else {
    bar.append(rect(start, end, {fill: fillOf(row.method), class: "whole"}));
  }
  const middle = y + barLook.height / 2, low = x(of(row, row.p10_us)), high = x(of(row, row.p90_us));
  bar.append(svg("path", {class: "spread", d: `M${low.toFixed(1)} ${middle}H${high.toFixed(1)}M${low.toFixed(1)} ${middle - 3}v6M${high.toFixed(1)} ${middle - 3}v6`}));
  chart.append(bar);
}

/** What the rows of a group share: how long its parts take alone. */
function groupFacts(row, narrow) {
  const facts = [];
  if (row.gemm_us) facts.push(`GEMM ${time(row.gemm_us)}${row.gemm_by && !narrow ? ` (${row.gemm_by})` : ""}`);
  if (row.comm_us) facts.push(`exchange ${time(row.comm_us)}`);
  return facts.join(" · ");
}

/** The total always; of the others, those that have a value and for which there is room. */
function columnsThatFit(groups, room) {
  let used = 0;
  return barColumns.filter((column, i) => {
    if (!groups.some(group => group.rows.some(row => column.text(row) !== none))) return false;
    used += column.width;
    return i === 0 || used <= room;
  });
}

/** Groups are {m, rows}. */
function drawBars(place, groups, relative, width) {
  const narrow = width < 560;
  const longest = Math.max(...groups.flatMap(group => group.rows.map(row => labelOf(row).length)));
  const left = narrow ? 12 : Math.min(20 + longest * 6.6, 240);
  const columns = columnsThatFit(groups, width - left - 330);
  const right = width - (narrow ? 14 : columns.reduce((sum, column) => sum + column.width, 0) + 10);
  const line = narrow ? barLook.tall : barLook.line;
  const height = 6 + groups.reduce((sum, group) => sum + barLook.head + group.rows.length * line + barLook.gap, 0) + barLook.foot;
  const {of, most, title} = barScale(groups, relative);
  const chart = picture(width, height, `Bars of ${title}, for m ${groups.map(group => group.m).join(", ")}; the numbers are in the table below`);
  const values = ticks(0, most, (right - left) / 70), x = linear(0, Math.max(most, values.at(-1)), left, right);
  addAxisBelow(chart, {values, texts: tickTexts(values), scale: x, top: 6, bottom: height - barLook.foot, title, left, right});

  let y = 6;
  groups.forEach((group, index) => {
    const first = group.rows[0], facts = groupFacts(first, narrow), head = svg("text", {x: 0, y: y + 17, class: "group"}, `m ${fixed(group.m, 0)}`);
    head.append(svg("tspan", {class: "group-facts", dx: 8}, facts));
    chart.append(head);
    if (!narrow && index === 0 && columns.length > 1)
      columns.reduce((at, column) => (chart.append(label(at + column.width, y + 17, column.title, "column", "end")), at + column.width), right);
    y += barLook.head;
    const top = y;
    for (const row of group.rows) {
      const bar = narrow ? y + 16 : y + 3;
      const name = label(narrow ? 14 : 14, narrow ? y + 12 : bar + 11, labelOf(row), "bar-label");
      chart.append(marker(row.method, 5, narrow ? y + 8 : bar + 7, 3.2), name);
      addBar(chart, row, x, bar, of);
      if (narrow) {
        const more = row.efficiency === null ? "" : ` · E ${fixed(row.efficiency, 2)}`;
        const text = label(width, y + 12, "", "value", "end");
        text.append(svg("tspan", {class: "total", "data-row": row.index}, time(row.total_us)), more);
        chart.append(text);
      } else {
        columns.reduce((at, column) => {
          const cell = label(at + column.width, bar + 11, column.text(row), `value ${column.kind}`, "end");
          cell.setAttribute("data-row", row.index);
          chart.append(cell);
          return at + column.width;
        }, right);
      }
      y += line;
    }
    if (first.floor_us) {
      const floor = x(of(first, first.floor_us)).toFixed(1), above = narrow ? 13 : 0;
      const strokes = group.rows.map((row, i) => `M${floor} ${top + i * line + above}v${line - above}`);
      chart.append(svg("path", {class: "floor", d: strokes.join("")}, svg("title", {}, `floor ${time(first.floor_us)}`)));
    }
    y += barLook.gap;
  });
  place.replaceChildren(chart);
}
