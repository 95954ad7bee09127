// Stacked bars, a group for each m: GEMM in grey, ECT in the colour of its method. A bar shorter than its GEMM ends
// early, and a dashed frame shows what is missing.

const barLook = {height: 13, line: 19, tall: 33, head: 26, gap: 8, top: 6, foot: 40, narrow: 560};

/** The numbers beside a bar. */
const barColumns = [
  {title: "total", width: 78, kind: "total", text: row => timeLike(row.total_us, row.gemm_us || row.total_us)},
  {title: "ECT", width: 78, kind: "ect", text: row => (row.op === "gemm" ? none : timeLike(row.ect_us, row.gemm_us))},
  {title: "E", width: 46, kind: "efficiency", text: row => fixed(row.efficiency, 2)},
  {title: "× floor", width: 54, kind: "over-floor", text: row => fixed(row.over_floor, 2)},
  {title: "TFLOP/s", width: 60, kind: "tflops", text: row => significant(row.tflops)},
];

/** The total always; of the others, those that have a value and for which there is room. */
function columnsThatFit(groups, room) {
  let used = 0;
  return barColumns.filter((column, i) => {
    if (!groups.some(group => group.rows.some(row => column.text(row) !== none))) return false;
    used += column.width;
    return i === 0 || used <= room;
  });
}

/** Where everything stands, and how long a time is: in multiples of the GEMM only if every row has one. */
function barLayout(groups, relative, width) {
  const all = groups.flatMap(group => group.rows), narrow = width < barLook.narrow;
  const line = narrow ? barLook.tall : barLook.line;
  const longest = Math.max(...all.map(row => labelOf(row).length));
  const left = narrow ? 12 : Math.min(20 + longest * 6.6, 240);
  const columns = narrow ? [] : columnsThatFit(groups, width - left - 330);
  const right = width - (narrow ? 14 : 10 + columns.reduce((sum, column) => sum + column.width, 0));
  const perGroup = barLook.head + barLook.gap;
  const height = barLook.top + groups.length * perGroup + all.length * line + barLook.foot;

  const multiples = relative && all.every(row => row.gemm_us > 0);
  const unit = timeUnit(Math.max(...all.map(row => row.total_us)));
  const value = (row, us) => (multiples ? us / row.gemm_us : us / unit.us);
  const most = Math.max(...all.flatMap(row => [row.p90_us, row.total_us, row.floor_us || 0].map(us => value(row, us))));
  const values = ticks(0, most, (right - left) / 70);
  const scale = linear(0, Math.max(most, values.at(-1)), left, right);
  const title = multiples ? "time, in multiples of GEMM alone" : `time (${unit.name})`;
  const x = (row, us) => scale(value(row, us));
  return {narrow, line, left, right, columns, width, height, values, scale, title, x};
}

/** All that is known of a bar, for who points at it. */
function barTitle(row) {
  const spread = `10th to 90th percentile ${time(row.p10_us)} to ${time(row.p90_us)}`;
  const parts = [`${labelOf(row)}, m ${row.m}: ${time(row.total_us)} (${spread})`];
  if (row.gemm_us) parts.push(`GEMM alone ${time(row.gemm_us)}${row.gemm_by ? ` by ${row.gemm_by}` : ""}`);
  if (row.ect_us !== null && row.op !== "gemm") parts.push(`ECT ${time(row.ect_us)}`);
  if (row.efficiency !== null) parts.push(`E ${fixed(row.efficiency, 3)}`);
  if (row.over_floor !== null) parts.push(`${fixed(row.over_floor, 3)} × floor`);
  if (row.plan) parts.push(`plan: ${row.plan}`);
  return parts.join("\n");
}

function barOf(row, y, x) {
  const start = x(row, 0), end = x(row, row.total_us);
  const rect = (from, to, look) => svg("rect",
    {x: from.toFixed(1), y, width: Math.max(to - from, 0).toFixed(1), height: barLook.height, ...look});
  const bar = svg("g", {class: "bar", "data-row": row.index}, svg("title", {}, barTitle(row)));
  if (row.gemm_us && row.op !== "gemm" && row.ect_us !== null) {
    const gemm = x(row, row.gemm_us);
    bar.append(rect(start, Math.min(gemm, end), {class: "gemm"}));
    if (end > gemm) bar.append(rect(gemm, end, {class: "ect", fill: fillOf(row.method)}));
    else bar.append(rect(end, gemm, {class: "saved", style: `--colour:${colourOf(row.method)}`}));
  } else {
    bar.append(rect(start, end, {class: "whole", fill: fillOf(row.method)}));
  }
  const low = x(row, row.p10_us).toFixed(1), high = x(row, row.p90_us).toFixed(1), middle = y + barLook.height / 2;
  const ends = [low, high].map(at => `M${at} ${middle - 3}v6`).join("");
  bar.append(svg("path", {class: "spread", d: `M${low} ${middle}H${high}${ends}`}));
  return bar;
}

/** A line of a wide chart: name, bar, a column for each number. */
function wideLine(row, y, {columns, right, x}) {
  let at = right;
  const numbers = columns.map(column => {
    at += column.width;
    const number = label(at, y + 14, column.text(row), `value ${column.kind}`, "end");
    number.setAttribute("data-row", row.index);
    return number;
  });
  const name = label(14, y + 14, labelOf(row), "bar-label");
  return [marker(row.method, 5, y + 10, 3.2), name, barOf(row, y + 3, x), ...numbers];
}

/** A line of a narrow one: name and numbers above the bar. */
function narrowLine(row, y, {width, x}) {
  const numbers = label(width, y + 12, "", "value", "end");
  numbers.append(svg("tspan", {class: "total", "data-row": row.index}, time(row.total_us)));
  if (row.efficiency !== null) numbers.append(` · E ${fixed(row.efficiency, 2)}`);
  const name = label(14, y + 12, labelOf(row), "bar-label");
  return [marker(row.method, 5, y + 8, 3.2), name, numbers, barOf(row, y + 16, x)];
}

/** "m 4096", and how long the parts of the problem take alone. */
function groupHead(group, y, narrow) {
  const row = group.rows[0], facts = [];
  if (row.gemm_us) facts.push(`GEMM ${time(row.gemm_us)}${row.gemm_by && !narrow ? ` (${row.gemm_by})` : ""}`);
  if (row.comm_us) facts.push(`exchange ${time(row.comm_us)}`);
  return svg("text", {x: 0, y: y + 17, class: "group"}, `m ${fixed(group.m, 0)}`,
    svg("tspan", {class: "group-facts", dx: 8}, facts.join(" · ")));
}

/** A stroke through every bar of the group. */
function floorStroke(group, y, {x, line, narrow}) {
  const row = group.rows[0], at = x(row, row.floor_us).toFixed(1), above = narrow ? 13 : 0;
  const strokes = group.rows.map((_, i) => `M${at} ${y + i * line + above}v${line - above}`);
  return svg("path", {class: "floor", d: strokes.join("")}, svg("title", {}, `floor ${time(row.floor_us)}`));
}

/** Groups are {m, rows}. */
function drawBars(place, groups, relative, width) {
  const look = barLayout(groups, relative, width), {narrow, line, columns, title} = look;
  const sizes = groups.map(group => group.m).join(", ");
  const chart = picture(width, look.height, `Bars of ${title}, for m ${sizes}; the table below has the numbers`);
  addAxisBelow(chart, {values: look.values, texts: tickTexts(look.values), scale: look.scale, top: barLook.top,
    bottom: look.height - barLook.foot, title, left: look.left, right: look.right});
  if (columns.length > 1) {
    let at = look.right;
    for (const column of columns)
      chart.append(label(at += column.width, barLook.top + 17, column.title, "column", "end"));
  }
  let y = barLook.top;
  for (const group of groups) {
    chart.append(groupHead(group, y, narrow));
    y += barLook.head;
    group.rows.forEach((row, i) => chart.append(...(narrow ? narrowLine : wideLine)(row, y + i * line, look)));
    if (group.rows[0].floor_us) chart.append(floorStroke(group, y, look));
    y += group.rows.length * line + barLook.gap;
  }
  place.replaceChildren(chart);
}
