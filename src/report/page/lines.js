// A measure against m, a line for each method.

const lineLook = {height: 208, top: 12, foot: 42, left: 44};
const lineName = line => (line.method ? methodOf(line.method).label : "link");
const lineColour = line => (line.method ? colourOf(line.method) : "var(--ink)");

/** Scales of both axes; names stand at the ends of lines where there is room. */
function lineLayout(series, measure, lines, width) {
  const values = lines.flatMap(line => line.rows.map(measure.of)), named = width >= 380 && !measure.shared;
  const [low, high] = measure.range(Math.min(...values), Math.max(...values));
  const longest = Math.max(...lines.map(line => lineName(line).length));
  const {left, top} = lineLook, bottom = lineLook.height - lineLook.foot;
  const right = width - (named ? 30 + longest * 6.4 : 14);
  const steps = outerTicks(low, high, 5);
  const y = linear(Math.min(steps[0], low), Math.max(steps.at(-1), high), bottom, top);
  const x = logarithmic(Math.max(series.ms[0], 1), Math.max(series.ms.at(-1), 2), left + 10, right - 8);
  return {low, high, left, right, top, bottom, named, steps, y, x: m => x(Math.max(m, 1))};
}

function addLineAxes(chart, series, measure, {left, right, bottom, steps, x, y}) {
  const texts = tickTexts(steps);
  steps.forEach((value, i) => {
    const at = y(value).toFixed(1), rule = measure.rules.some(fixedLine => Math.abs(fixedLine - value) < 1e-9);
    chart.append(svg("line", {x1: left, x2: right, y1: at, y2: at, class: rule ? "axis" : "grid"}),
      label(left - 6, y(value) + 4, texts[i], "tick", "end"));
  });
  const names = series.ms.map(String), shown = apart(series.ms.map(x), names);
  series.ms.forEach((m, i) => {
    const at = x(m).toFixed(1);
    chart.append(svg("line", {x1: at, x2: at, y1: bottom, y2: bottom + 4, class: "axis"}));
    if (shown[i]) chart.append(label(x(m), bottom + 16, names[i], "tick", "middle"));
  });
  const title = "m, rows of the layer (log scale)";
  chart.append(label((left + right) / 2, lineLook.height - 8, title, "axis-title", "middle"));
}

/** Draws one line, and returns what must be written about points off the scale. */
function addLine(chart, line, measure, {low, high, left, x, y}) {
  const inside = value => Math.min(Math.max(value, low), high), beyond = [];
  const points = line.rows.map(row => [x(row.m), y(inside(measure.of(row)))]);
  const path = points.map(point => point.map(at => at.toFixed(1)).join(",")).join(" ");
  const style = `--colour:${lineColour(line)}`;
  chart.append(svg("polyline", {class: "line", points: path, style}));
  line.rows.forEach((row, i) => {
    const value = measure.of(row), [atX, atY] = points[i];
    const mark = line.method ? marker(line.method, atX, atY)
      : svg("circle", {cx: atX, cy: atY, r: 3, class: "marker full", style});
    mark.append(svg("title", {}, `${lineName(line)}, m ${row.m}: ${measure.text(value)}`));
    chart.append(mark);
    if (inside(value) === value) return;
    const arrow = value < low ? "↓" : "↑", side = value < low ? -9 : 15;
    beyond.push(label(Math.max(atX, left + 26), atY + side, `${arrow} ${measure.text(value)}`, "beyond", "middle"));
  });
  return beyond;
}

/** Names at the ends of lines, pushed apart. */
function addEndLabels(chart, lines, measure, {low, high, top, bottom, right, y}) {
  const step = 13, ends = lines.map(line => {
    const last = Math.min(Math.max(measure.of(line.rows.at(-1)), low), high);
    return {line, y: y(last)};
  }).sort((a, b) => a.y - b.y);
  ends.forEach((end, i) => { end.at = Math.max(end.y, i ? ends[i - 1].at + step : top + 4); });
  for (let i = ends.length - 1; i >= 0; --i)
    ends[i].at = Math.min(ends[i].at, i + 1 < ends.length ? ends[i + 1].at - step : bottom);
  for (const {line, at} of ends)
    chart.append(marker(line.method, right + 14, at, 3.2), label(right + 22, at + 4, lineName(line), "line-label"));
}

/** Returns how to find and show the reading line: its places, by m, and show(index). */
function drawLines(place, series, measure, width) {
  const lines = linesOf(series, measure), look = lineLayout(series, measure, lines, width);
  const words = `${measure.title} (${measure.unit}) against m, for ${lines.map(lineName).join(", ")}`;
  const chart = picture(width, lineLook.height, words);
  addLineAxes(chart, series, measure, look);
  const cross = svg("line", {class: "cross", y1: look.top, y2: look.bottom, visibility: "hidden"});
  chart.append(cross);
  chart.append(...lines.flatMap(line => addLine(chart, line, measure, look)));
  if (look.named) addEndLabels(chart, lines, measure, look);
  place.replaceChildren(chart);
  const places = series.ms.map(look.x);
  return {places, show(index) {
    cross.setAttribute("visibility", index === null ? "hidden" : "visible");
    if (index !== null) for (const end of ["x1", "x2"]) cross.setAttribute(end, places[index].toFixed(1));
  }};
}
