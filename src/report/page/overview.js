// Every problem of a file as a dot, a line for each method: what is usual, and what is far off.

/** The measure by which the methods of a file are told apart. */
function overviewMeasure(list) {
  if (list.some(row => row.over_floor !== null))
    return {of: row => row.over_floor, short: "total ÷ floor (log scale)",
      title: "total time, in multiples of the floor (log scale; 1 is as fast as GEMM or exchange alone)"};
  return {of: totalOverGemm, short: "total ÷ fastest GEMM (log scale)",
    title: "total time, in multiples of the fastest GEMM (log scale; 1 is as fast as the best)"};
}

/** The dots of one method around height y. Their jitter is the same at every drawing. */
function dotsOf(list, of, x, y) {
  return list.map((row, i) => {
    const cx = x(of(row)).toFixed(1), cy = (y + ((i * 7) % 11 - 5) * 1.1).toFixed(1);
    const words = `${row.workload}, m ${row.m}, ${plural(row.tp, "rank")}, ${labelOf(row)}: ${fixed(of(row), 3)}`;
    const style = `--colour:${colourOf(row.method)}`;
    return svg("circle", {class: "dot", cx, cy, r: 3.2, style}, svg("title", {}, words));
  });
}

function drawStrip(place, list, width) {
  const {of, title, short} = overviewMeasure(list), narrow = width < 560;
  const good = list.filter(row => row.variant === "" && of(row) !== null);
  const lines = sortMethods(new Set(good.map(row => row.method))).map(method => {
    const own = good.filter(row => row.method === method);
    return {method, own, middle: median(own.map(of))};
  });
  const step = narrow ? 46 : 34, left = narrow ? 4 : 160, right = width - (narrow ? 8 : 122), top = 8;
  const bottom = top + 4 + lines.length * step, height = bottom + 40, values = good.map(of);
  const low = Math.min(...values, 1) * 0.99, high = Math.max(...values, 1.05) * 1.02;
  const x = logarithmic(low, high, left, right), marks = logTicks(low, high);
  const medians = lines.map(({method, middle}) => `${methodOf(method).label} ${fixed(middle, 3)}`).join(", ");
  const chart = picture(width, height, `${title}: medians ${medians}`);
  const texts = marks.map(value => String(Number(value.toPrecision(3))));
  addAxisBelow(chart, {values: marks, texts, scale: x, top, bottom, title: width < 700 ? short : title, left, right});
  chart.append(svg("line", {x1: x(1), x2: x(1), y1: top, y2: bottom, class: "axis"}));
  lines.forEach(({method, own, middle}, i) => {
    const y = top + i * step + (narrow ? 30 : step / 2), text = narrow ? y - 16 : y + 4, at = narrow ? left + 5 : 8;
    const said = label(width, text, `median ${fixed(middle, 3)} of ${own.length}`, "value", "end");
    said.setAttribute("data-median", method);
    chart.append(marker(method, at, text - 4), label(at + 12, text, methodOf(method).label, "bar-label"), said,
      ...dotsOf(own, of, x, y), svg("path", {class: "median", d: `M${x(middle).toFixed(1)} ${y - 11}v22`}));
  });
  place.replaceChildren(chart);
}

function addOverview(section) {
  section.append(html("p", {class: "small"},
    "Each dot is one problem; the upright stroke is the median of its method. Methods that ran on different problems " +
    "are not a fair race: look at a workload below before you conclude."));
  data.files.forEach((file, index) => {
    const list = rows.filter(row => row.file === index), {of} = overviewMeasure(list);
    if (!list.some(row => row.variant === "" && of(row) !== null)) return;
    const place = html("div", {class: "plot"});
    section.append(html("figure", {class: "strip card"},
      html("figcaption", {}, html("b", {}, `${machineOf(file.machine)}, suite ${file.suite}`),
        html("span", {class: "unit"}, `${file.date.slice(0, 10)} · ${file.name}`)), place));
    drawAtWidth(place, width => drawStrip(place, list, width));
  });
}
