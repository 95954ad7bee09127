// Every problem of a file as a dot, a line for each method: what is usual, and what is far off.

/** The measure by which the methods of a file are told apart. */
function overviewMeasure(list) {
  if (list.some(row => row.over_floor !== null))
    return {of: row => row.over_floor, title: "total time, in multiples of the floor (log scale; 1 is as fast as GEMM or exchange alone)", short: "total ÷ floor (log scale)"};
  return {of: totalOverGemm, title: "total time, in multiples of the fastest GEMM (log scale; 1 is as fast as the best)", short: "total ÷ fastest GEMM (log scale)"};
}

function drawStrip(place, list, width) {
  const {of, title, short} = overviewMeasure(list);
  const good = list.filter(row => row.variant === "" && of(row) !== null);
  const methods = sortMethods(new Set(good.map(row => row.method)));
  const narrow = width < 560, line = narrow ? 46 : 34, left = narrow ? 4 : 160, right = width - (narrow ? 8 : 122);
  const height = 12 + methods.length * line + 40;
  const values = good.map(of), low = Math.min(...values, 1) * 0.99, high = Math.max(...values, 1.05) * 1.02;
  const x = logarithmic(low, high, left, right), marks = logTicks(low, high);
  const chart = picture(width, height, `${title}: medians ${methods.map(method => `${methodOf(method).label} ${fixed(median(good.filter(row => row.method === method).map(of)), 3)}`).join(", ")}`);
  addAxisBelow(chart, {values: marks, texts: marks.map(value => String(Number(value.toPrecision(3)))), scale: x, top: 8, bottom: height - 40, title: width < 700 ? short : title, left, right});
  chart.append(svg("line", {x1: x(1), x2: x(1), y1: 8, y2: height - 40, class: "axis"}));
  methods.forEach((method, i) => {
    const own = good.filter(row => row.method === method), middle = median(own.map(of));
    const y = 8 + i * line + (narrow ? 30 : line / 2), from = narrow ? y - 16 : y + 4;
    chart.append(narrow ? marker(method, left + 5, from - 4) : marker(method, 8, y), label(narrow ? left + 16 : 20, from, methodOf(method).label, "bar-label"));
    own.forEach((row, j) => {
      const jitter = ((j * 7) % 11 - 5) * 1.1;  // the same at every drawing
      chart.append(svg("circle", {class: "dot", cx: x(of(row)).toFixed(1), cy: (y + jitter).toFixed(1), r: 3.2, style: `--colour:${colourOf(method)}`},
        svg("title", {}, `${row.workload}, m ${row.m}, ${plural(row.tp, "rank")}, ${labelOf(row)}: ${fixed(of(row), 3)}`)));
    });
    chart.append(svg("path", {class: "median", d: `M${x(middle).toFixed(1)} ${y - 11}v22`}));
    const words2 = label(width, from, `median ${fixed(middle, 3)} of ${own.length}`, "value", "end");
    words2.setAttribute("data-median", method);
    chart.append(words2);
  });
  place.replaceChildren(chart);
}

function addOverview(section) {
  section.append(html("p", {class: "small"}, "Each dot is one problem; the upright stroke is the median of its method. Methods that ran on different problems are not a fair race: look at a workload below before you conclude."));
  data.files.forEach((file, index) => {
    const list = rows.filter(row => row.file === index && row.total_us > 0);
    const {of} = overviewMeasure(list);
    if (!list.some(row => row.variant === "" && of(row) !== null)) return;
    const place = html("div", {class: "plot"});
    section.append(html("figure", {class: "strip card"}, html("figcaption", {}, html("b", {}, `${machineOf(file.machine)}, suite ${file.suite}`),
      html("span", {class: "unit"}, `${file.date.slice(0, 10)} · ${file.name}`)), place));
    drawAtWidth(place, width => drawStrip(place, list, width));
  });
}
