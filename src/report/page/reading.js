// Charts of a series against m, read together: a line over all of them, moved by pointer or arrow keys, and its values
// in words.

/** "FLUX 117.1 µs, E 0.79, ..." for each method at one m. */
function readingsAt(series, m, chosen) {
  return rowsAt(series, m).filter(row => row.variant === "").map(row => {
    const own = chosen.filter(measure => !measure.shared && measure.of(row) !== null);
    const values = own.map(measure => `${measure.short} ${measure.text(measure.of(row))}`);
    const words = [time(row.total_us), ...values].join(", ");
    return html("span", {class: "reading"}, html("b", {}, labelOf(row)), ` ${words}`);
  });
}

class Reading {
  constructor(series) {
    this.series = series;
    this.chosen = drawableMeasures(series);
    this.index = null;
    this.drawn = new Map();
    this.told = html("p", {class: "readout", "aria-live": "polite"},
      "Point at a chart, or focus here and press ← and →, to read values.");
    this.group = html("div", {class: "lines", tabindex: 0, role: "group",
      "aria-label": "Charts against m; the arrow keys read values", onkeydown: event => this.key(event)});
    this.group.append(...this.chosen.map(measure => this.figure(measure)));
    const keys = html("ul", {class: "legend keys"}, ...series.methods.map(method =>
      html("li", {}, methodKey(method), methodOf(method).label)));
    this.element = html("div", {class: "measured"}, keys, this.group, this.told);
  }

  figure(measure) {
    const place = html("div", {class: "plot"});
    drawAtWidth(place, width => {
      const chart = drawLines(place, this.series, measure, width);
      this.drawn.set(measure, chart);
      chart.show(this.index);
    });
    place.addEventListener("pointermove", event =>
      this.point(event.clientX - place.getBoundingClientRect().left, measure));
    return html("figure", {class: "measure", "data-measure": measure.name},
      html("figcaption", {}, html("b", {}, measure.title), html("span", {class: "unit"}, measure.unit)), place);
  }

  point(x, measure) {
    const {places} = this.drawn.get(measure), distances = places.map(place => Math.abs(place - x));
    this.read(distances.indexOf(Math.min(...distances)));
  }

  key(event) {
    const last = this.series.ms.length - 1, now = this.index ?? -1;
    const to = {ArrowRight: Math.min(now + 1, last), ArrowLeft: Math.max(now - 1, 0), Home: 0, End: last}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.read(to);
  }

  read(index) {
    if (index === this.index) return;
    this.index = index;
    for (const chart of this.drawn.values()) chart.show(index);
    const m = this.series.ms[index];
    this.told.replaceChildren(html("b", {}, `m ${fixed(m, 0)}: `), ...readingsAt(this.series, m, this.chosen));
  }
}
