// A timeline that can be zoomed: lanes are workers and copy engines, bars what they did. Drawn on a canvas, as there
// may be a hundred thousand bars.

const kinds = [
  {name: "wait", text: "waits for rows"}, {name: "maths", text: "multiplies a tile"},
  {name: "store", text: "stores a tile"}, {name: "copy", text: "copies rows"},
  {name: "sum", text: "adds partial sums"}, {name: "step", text: "whole operation"},
];
const [spanKind, spanBegin, spanLength, spanRow, spanRows, spanBlock, spanPeer] = [0, 1, 2, 3, 4, 5, 6];
const laneLook = {rank: 20, foot: 34, named: {height: 22, bar: 16}, thin: {height: 8, bar: 7}};
const mostNamed = 64;  // more lanes than that, such as the blocks of a GPU, are thin and without names
const spanEnd = span => span[spanBegin] + span[spanLength];
const nanoseconds = ns => time(ns / 1000);

function spanText(lane, span) {
  const parts = [`rank ${lane.rank}, ${lane.name}: ${kinds[span[spanKind]].text}`], first = span[spanRow];
  if (first >= 0) parts.push(`rows ${fixed(first, 0)} to ${fixed(first + Math.max(span[spanRows], 1) - 1, 0)}`);
  if (span[spanBlock] >= 0) parts.push(`column block ${span[spanBlock]}`);
  if (span[spanPeer] >= 0) parts.push(`to rank ${span[spanPeer]}`);
  parts.push(`from ${nanoseconds(span[spanBegin])} for ${nanoseconds(span[spanLength])}`);
  return parts.join(", ");
}

class TimelineView {
  constructor(trace) {
    this.trace = trace;
    this.from = 0;
    this.to = Math.max(trace.duration_ns, 1);
    this.lane = 0;
    this.span = null;
    this.lanes = trace.lanes.length > mostNamed ? laneLook.thin : laneLook.named;
    const keys = "Left and right move, plus and minus zoom, up and down choose a lane, Enter the next bar, Home shows all.";
    this.canvas = html("canvas",
      {tabindex: 0, role: "application", "aria-label": `Timeline ${trace.title || trace.name}. ${keys}`});
    this.told = html("p", {class: "readout", "aria-live": "polite"}, "Click a bar, or focus the picture: ↑ ↓ lane, " +
      "Enter next bar, + − zoom, ← → move, Home all. Drag moves; Ctrl and the wheel zoom.");
    this.place = html("div", {class: "plot timeline"}, this.canvas);
    this.canvas.addEventListener("keydown", event => this.key(event));
    this.canvas.addEventListener("wheel", event => this.wheel(event), {passive: false});
    this.canvas.addEventListener("pointerdown", event => this.press(event));
    for (const change of ["focus", "blur"]) this.canvas.addEventListener(change, () => this.draw());
    addEventListener("themechange", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    drawAtWidth(this.place, width => { this.width = width; this.draw(); });
  }

  /** Where lane `index` begins: a heading stands above the first of each rank. */
  layout() {
    let y = 0, rank = null;
    const tops = this.trace.lanes.map(lane => {
      if (lane.rank !== rank) y += laneLook.rank, rank = lane.rank;
      const top = y;
      y += this.lanes.height;
      return top;
    });
    return {tops, height: y + laneLook.foot};
  }

  get left() { return this.width < 560 || this.lanes === laneLook.thin ? 0 : 110; }

  zoom(factor, around = 0.5) {
    const now = this.to - this.from, length = Math.min(Math.max(now * factor, 20), Math.max(this.trace.duration_ns, 20));
    this.look(this.from + (now - length) * around, length);
  }

  look(from, length) {
    this.from = Math.min(Math.max(from, 0), Math.max(this.trace.duration_ns - length, 0));
    this.to = this.from + length;
    this.draw();
  }

  move(share) { this.look(this.from + (this.to - this.from) * share, this.to - this.from); }
  all() { this.look(0, Math.max(this.trace.duration_ns, 1)); }

  key(event) {
    const acts = {
      ArrowLeft: () => this.move(-0.15), ArrowRight: () => this.move(0.15),
      ArrowUp: () => this.choose(this.lane - 1), ArrowDown: () => this.choose(this.lane + 1),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), Home: () => this.all(),
      Enter: () => this.step(event.shiftKey ? -1 : 1), Escape: () => this.tell(this.lane, null),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.min(Math.max(this.shareAt(event), 0), 1));
  }

  /** How far to the right of the lanes' begin the pointer is, 1 at their end. */
  shareAt(event) {
    return (event.clientX - this.canvas.getBoundingClientRect().left - this.left) / (this.width - this.left);
  }

  press(event) {
    const start = event.clientX, from = this.from, length = this.to - this.from;
    const perPixel = length / (this.width - this.left);
    let moved = false;
    const move = now => {
      if (Math.abs(now.clientX - start) > 3) moved = true;
      if (moved) this.look(from - (now.clientX - start) * perPixel, length);
    };
    const end = now => {
      this.canvas.removeEventListener("pointermove", move);
      if (!moved && now.type === "pointerup") this.pick(now);
    };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end, {once: true});
    this.canvas.addEventListener("pointercancel", end, {once: true});
  }

  pick(event) {
    const {tops} = this.layout(), length = this.to - this.from, y = event.clientY - this.canvas.getBoundingClientRect().top;
    const lane = tops.findIndex(top => y >= top && y < top + this.lanes.height);
    if (lane < 0) return;
    const at = this.from + this.shareAt(event) * length, slack = 3 * length / this.width;
    const under = this.trace.lanes[lane].spans.filter(span => at >= span[spanBegin] - slack && at <= spanEnd(span) + slack);
    this.tell(lane, under.sort((a, b) => a[spanLength] - b[spanLength])[0] || null);
  }

  choose(lane) {
    this.tell(Math.min(Math.max(lane, 0), this.trace.lanes.length - 1), null);
  }

  /** The next bar of the lane, moved into view. */
  step(by) {
    const {spans} = this.trace.lanes[this.lane], length = this.to - this.from;
    const inView = spans.findIndex(span => span[spanBegin] >= this.from);
    const next = this.span ? spans.indexOf(this.span) + by : inView < 0 ? spans.length - 1 : inView;
    const span = spans[Math.min(Math.max(next, 0), spans.length - 1)];
    if (span[spanBegin] < this.from || spanEnd(span) > this.to) this.look(span[spanBegin] - length / 2, length);
    this.tell(this.lane, span);
  }

  tell(lane, span) {
    this.lane = lane;
    this.span = span;
    const its = this.trace.lanes[lane];
    this.told.textContent = span ? spanText(its, span)
      : `rank ${its.rank}, ${its.name}: ${plural(its.spans.length, "bar")}. Enter reads them one by one.`;
    this.draw();
  }

  draw() {
    if (this.width) drawTimeline(this);
  }
}

/** Time spent by kind, over all lanes. */
function spentBy(trace) {
  const spent = kinds.map(() => 0);
  for (const lane of trace.lanes) for (const span of lane.spans) spent[span[spanKind]] += span[spanLength];
  return spent;
}

function traceOf(trace) {
  const shown = new TimelineView(trace), bars = trace.lanes.reduce((sum, lane) => sum + lane.spans.length, 0);
  const tool = (text, title, act) => html("button", {type: "button", title, "aria-label": title, onclick: act}, text);
  const legend = spentBy(trace).map((ns, i) => (ns > 0 ? html("li", {}, html("span", {class: `patch ${kinds[i].name}`}),
    `${kinds[i].text}, ${nanoseconds(ns)} in all`) : null));
  const size = [nanoseconds(trace.duration_ns), plural(trace.lanes.length, "lane"), plural(bars, "bar")].join(" · ");
  return html("article", {class: "card trace"},
    html("h3", {}, trace.title || trace.name),
    html("p", {class: "setting"}, trace.facts.map(([what, value]) => `${what}: ${value}`).join(" · ")),
    html("p", {class: "origin"}, `${trace.name} · ${size}`),
    html("div", {class: "tools"},
      tool("+", "Zoom in", () => shown.zoom(0.5)), tool("−", "Zoom out", () => shown.zoom(2)),
      tool("←", "Earlier", () => shown.move(-0.3)), tool("→", "Later", () => shown.move(0.3)),
      tool("All", "Show all", () => shown.all())),
    html("ul", {class: "legend"}, ...legend), shown.place, shown.told);
}

function addTimelines(place) {
  place.hidden = !data.timelines.length;
  place.append(html("p", {class: "small"},
    "One call, seen from every rank. Where bars of copies lie beside bars of maths, communication is hidden. " +
    "The same file opens in ui.perfetto.dev, with arrows from each copy to the tile it releases."));
  place.append(...data.timelines.map(traceOf));
}
