// A measure against m, a line for each method.

const measures = [
  {name: "efficiency", title: "E, overlap efficiency", unit: "1: all hidden · 0: nothing gained", of: row => row.efficiency, text: value => fixed(value, 2),
    range: (low, high) => [Math.max(Math.min(low, 0), -1), Math.max(high, 1)], rules: [0, 1]},
  {name: "over_floor", title: "Total ÷ floor", unit: "1: as fast as the longer of GEMM and exchange", of: row => row.over_floor, text: value => fixed(value, 2),
    range: (low, high) => [Math.min(low, 1), Math.max(Math.min(high, 4), 1.1)], rules: [1]},
  {name: "over_gemm", title: "Total ÷ fastest GEMM", unit: "1: as fast as the best", of: row => (row.op === "gemm" ? totalOverGemm(row) : null), text: value => fixed(value, 3),
    range: (low, high) => [Math.min(low, 0.99), Math.max(high, 1.05)], rules: [1]},
  {name: "tflops", title: "Speed of one rank", unit: "TFLOP/s", of: row => row.tflops, text: value => significant(value), range: (low, high) => [0, high]},
  {name: "link_gbps", title: "Link, exchange alone", unit: "GB/s", of: row => row.link_gbps, text: value => significant(value), range: (low, high) => [0, high], shared: true},
  {name: "read_gbps", title: "Memory read", unit: "GB/s", of: row => row.read_gbps, text: value => significant(value), range: (low, high) => [0, high]},
];

/** The points of each line; ablations are left to the bars. A shared measure is the same for all methods: one line. */
function linesOf(series, measure) {
  const own = series.rows.filter(row => row.variant === "" && measure.of(row) !== null).sort((a, b) => a.m - b.m);
  if (measure.shared) {
    const once = new Map(own.map(row => [row.m, row]));
    return once.size ? [{method: null, rows: [...once.values()]}] : [];
  }
  return series.methods.map(method => ({method, rows: own.filter(row => row.method === method)})).filter(line => line.rows.length);
}

const drawableMeasures = series => (series.ms.length < 2 ? [] : measures.filter(measure => linesOf(series, measure).length));

/** Names at the ends of lines, pushed apart. */
function addEndLabels(chart, ends, x, top, bottom) {
  ends.sort((a, b) => a.y - b.y);
  const step = 13;
  ends.forEach((end, i) => { end.at = Math.max(end.y, i ? ends[i - 1].at + step : top + 4); });
  for (let i = ends.length - 1; i >= 0; --i) ends[i].at = Math.min(ends[i].at, i < ends.length - 1 ? ends[i + 1].at - step : bottom);
  for (const end of ends) {
    chart.append(marker(end.method, x + 12, end.at, 3.2), label(x + 20, end.at + 4, methodOf(end.method).label, "line-label"));
  }
}

function drawLines(place, series, measure, width) {
  const lines = linesOf(series, measure), values = lines.flatMap(line => line.rows.map(measure.of));
  const [low, high] = measure.range(Math.min(...values), Math.max(...values));
  const height = 208, top = 12, bottom = height - 42, named = width >= 380 && !measure.shared;
  const longest = Math.max(0, ...lines.map(line => (line.method ? methodOf(line.method).label.length : 0)));
  const left = 44, right = width - (named ? 30 + longest * 6.4 : 14);
  const steps = outerTicks(low, high, 5), texts = tickTexts(steps);
  const y = linear(Math.min(steps[0], low), Math.max(steps.at(-1), high), bottom, top);
  const x = series.ms.length > 1 ? logarithmic(Math.max(series.ms[0], 1), Math.max(series.ms.at(-1), 2), left + 10, right - 8) : () => (left + right) / 2;
  const chart = picture(width, height, `${measure.title} (${measure.unit}) against m, for ${lines.map(line => (line.method ? methodOf(line.method).label : "the link")).join(", ")}`);
  steps.forEach((value, i) => {
    const at = y(value).toFixed(1), rule = (measure.rules || [0]).some(fixedLine => Math.abs(fixedLine - value) < 1e-9);
    chart.append(svg("line", {x1: left, x2: right, y1: at, y2: at, class: rule ? "axis" : "grid"}), label(left - 6, y(value) + 4, texts[i], "tick", "end"));
  });
  const places = series.ms.map(m => x(Math.max(m, 1))), names = series.ms.map(m => String(m)), shown = apart(places, names);
  places.forEach((at, i) => {
    chart.append(svg("line", {x1: at.toFixed(1), x2: at.toFixed(1), y1: bottom, y2: bottom + 4, class: "axis"}));
    if (shown[i]) chart.append(label(at, bottom + 16, names[i], "tick", "middle"));
  });
  chart.append(label((left + right) / 2, height - 8, "m, rows of the layer (log scale)", "axis-title", "middle"));
  const cross = svg("line", {class: "cross", y1: top, y2: bottom, visibility: "hidden"});
  chart.append(cross);

  const inside = value => Math.min(Math.max(value, low), high);
  const ends = [], beyond = [];
  for (const {method, rows: points} of lines) {
    const at = points.map(row => [x(Math.max(row.m, 1)), y(inside(measure.of(row)))]);
    const colour = method ? colourOf(method) : "var(--ink)";
    chart.append(svg("polyline", {class: "line", points: at.map(point => point.map(v => v.toFixed(1)).join(",")).join(" "), style: `--colour:${colour}`}));
    points.forEach((row, i) => {
      const value = measure.of(row), mark = method ? marker(method, ...at[i]) : svg("circle", {cx: at[i][0], cy: at[i][1], r: 3, class: "marker full", style: "--colour:var(--ink)"});
      mark.append(svg("title", {}, `${method ? methodOf(method).label : "link"}, m ${row.m}: ${measure.text(value)}`));
      chart.append(mark);
      if (inside(value) !== value)  // off the scale: said, not hidden
        beyond.push(label(Math.max(at[i][0], left + 26), at[i][1] + (value < low ? -9 : 15), `${value < low ? "↓" : "↑"} ${measure.text(value)}`, "beyond", "middle"));
    });
    if (named) ends.push({method, y: at.at(-1)[1]});
  }
  chart.append(...beyond);
  if (named) addEndLabels(chart, ends, right + 2, top, bottom);
  place.replaceChildren(chart);
  return {places, show(index) {
    cross.setAttribute("visibility", index === null ? "hidden" : "visible");
    if (index !== null) cross.setAttribute("x1", places[index]), cross.setAttribute("x2", places[index]);
  }};
}

/** All measures of a series. One stop of the keyboard: arrows move a line over all charts, and values are read out. */
function lineCharts(series) {
  const chosen = drawableMeasures(series);
  const readout = html("p", {class: "readout", "aria-live": "polite"}, "Point at a chart, or focus here and press ← and →, to read values.");
  const group = html("div", {class: "lines", tabindex: 0, role: "group", "aria-label": "Charts against m; the arrow keys read values"});
  const drawn = new Map();
  let index = null;
  const read = to => {
    index = to;
    for (const chart of drawn.values()) chart.show(index);
    if (index === null) return;
    const m = series.ms[index], parts = [];
    for (const row of rowsAt(series, m).filter(one => one.variant === "")) {
      const values = chosen.filter(measure => !measure.shared && measure.of(row) !== null).map(measure => `${shortName[measure.name]} ${measure.text(measure.of(row))}`);
      parts.push(html("span", {class: "reading"}, html("b", {}, labelOf(row)), ` ${[time(row.total_us), ...values].join(", ")}`));
    }
    readout.replaceChildren(html("b", {}, `m ${fixed(m, 0)}: `), ...parts);
  };
  for (const measure of chosen) {
    const place = html("div", {class: "plot"});
    group.append(html("figure", {class: "measure", "data-measure": measure.name},
      html("figcaption", {}, html("b", {}, measure.title), html("span", {class: "unit"}, measure.unit)), place));
    drawAtWidth(place, width => {
      drawn.set(measure, drawLines(place, series, measure, width));
      drawn.get(measure).show(index);
    });
    place.addEventListener("pointermove", event => {
      const at = event.clientX - place.getBoundingClientRect().left, {places} = drawn.get(measure);
      const nearest = places.reduce((best, one, i) => (Math.abs(one - at) < Math.abs(places[best] - at) ? i : best), 0);
      if (nearest !== index) read(nearest);
    });
  }
  group.addEventListener("keydown", event => {
    const last = series.ms.length - 1, now = index === null ? -1 : index;
    const to = {ArrowRight: Math.min(now + 1, last), ArrowLeft: Math.max(now - 1, 0), Home: 0, End: last}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    read(to);
  });
  return chosen.length ? html("div", {class: "measured"}, group, readout) : null;
}

const shortName = {efficiency: "E", over_floor: "× floor", over_gemm: "÷ GEMM", tflops: "TFLOP/s", link_gbps: "GB/s", read_gbps: "read GB/s"};
