// All rows as a table that can be sorted. A hundred at a time, so that it stays quick.

const pageSize = 100;
const us = value => fixed(value, 1);
const allColumns = [
  {name: "workload", title: "Workload", text: row => row.workload},
  {name: "op", title: "Operation", text: operationOf},
  {name: "m", title: "m", number: true, text: row => fixed(row.m, 0)},
  {name: "method", title: "Method", text: row => methodOf(row.method).label},
  {name: "variant", title: "Variant", text: row => row.variant},
  {name: "total_us", title: "Total", unit: "µs", number: true, text: row => us(row.total_us)},
  {name: "gemm_us", title: "GEMM", unit: "µs", number: true, text: row => us(row.gemm_us)},
  {name: "ect_us", title: "ECT", unit: "µs", number: true, text: row => us(row.ect_us)},
  {name: "efficiency", title: "E", number: true, text: row => fixed(row.efficiency, 3)},
  {name: "over_floor", title: "Total ÷ floor", number: true, text: row => fixed(row.over_floor, 3)},
  {name: "tflops", title: "Speed", unit: "TFLOP/s", number: true, text: row => significant(row.tflops, 4)},
  {name: "comm_us", title: "Exchange", unit: "µs", number: true, text: row => us(row.comm_us)},
  {name: "link_gbps", title: "Link", unit: "GB/s", number: true, text: row => significant(row.link_gbps, 4)},
  {name: "p10_us", title: "10th pct.", unit: "µs", number: true, text: row => us(row.p10_us)},
  {name: "p90_us", title: "90th pct.", unit: "µs", number: true, text: row => us(row.p90_us)},
  {name: "floor_us", title: "Floor", unit: "µs", number: true, rare: true, text: row => us(row.floor_us)},
  {name: "peak_floor_us", title: "Floor at the link’s peak", unit: "µs", number: true, rare: true,
    text: row => us(row.peak_floor_us)},
  {name: "p50_us", title: "50th pct.", unit: "µs", number: true, rare: true, text: row => us(row.p50_us)},
  {name: "p99_us", title: "99th pct.", unit: "µs", number: true, rare: true, text: row => us(row.p99_us)},
  {name: "read_gbps", title: "Memory read", unit: "GB/s", number: true, rare: true, text: row => significant(row.read_gbps, 4)},
  {name: "comm_by", title: "Exchange by", rare: true, text: row => row.comm_by || none},
  ...["gemm", "fusion", "head", "traffic", "sum", "tail"].map(part => ({name: `budget_${part}_us`,
    title: `Above the floor: ${part}`, unit: "µs", number: true, rare: true, text: row => us(row[`budget_${part}_us`])})),
  {name: "n", title: "n", number: true, text: row => fixed(row.n, 0)},
  {name: "k", title: "k", number: true, text: row => fixed(row.k, 0)},
  {name: "tp", title: "Ranks", number: true, text: row => fixed(row.tp, 0)},
  {name: "dtype", title: "Type", text: row => row.dtype},
  {name: "world", title: "World", text: row => `${row.world}, ${row.link}`},
  {name: "timing", title: "Timing", text: row => `${row.timing}, ${row.cache}`},
  {name: "error", title: "Error", number: true, text: row => scientific(row.error)},
  {name: "plan", title: "Plan", text: row => row.plan || none},
  {name: "file", title: "File", text: row => data.files[row.file].name},
];

/** What some suites alone measure has a column only where a row has a value. */
const columns = allColumns.filter(column => !column.rare || rows.some(row => row[column.name] !== null));

/** In the order of a column; what has no value stays last either way. */
function sorted(list, column, down) {
  const value = column.number ? row => row[column.name] : row => column.text(row);
  const missing = one => one === null || one === "" || one === none;
  return [...list].sort((a, b) => {
    const x = value(a), y = value(b);
    if (missing(x) || missing(y)) return missing(x) - missing(y) || a.index - b.index;
    const order = column.number ? x - y : x.localeCompare(y);
    return (down ? -order : order) || a.index - b.index;
  });
}

class Table {
  constructor(section) {
    this.order = {column: null, down: false};
    this.list = [];
    this.shown = pageSize;
    this.count = html("p", {class: "small", "aria-live": "polite", id: "row-count"});
    this.body = html("tbody");
    this.heads = columns.map(column => this.head(column));
    this.more = html("button", {type: "button", onclick: () => this.extend(this.shown + pageSize)}, "Show 100 more");
    this.all = html("button", {type: "button", onclick: () => this.extend(this.list.length)}, "Show all");
    section.append(this.count,
      html("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of all rows, scrolls sideways"},
        html("table", {}, html("thead", {}, html("tr", {}, ...this.heads)), this.body)),
      html("p", {class: "more"}, this.more, this.all));
  }

  head(column) {
    const unit = column.unit ? html("span", {class: "unit"}, column.unit) : null;
    return html("th", {scope: "col", class: column.number ? "number" : null, "data-column": column.name},
      html("button", {type: "button", onclick: () => this.sortBy(column)}, column.title, unit,
        html("span", {class: "arrow", "aria-hidden": true})));
  }

  /** Shows other rows, each with a link to the card with that id. */
  show(list, links) {
    this.links = links;
    this.list = this.order.column ? sorted(list, this.order.column, this.order.down) : list;
    this.shown = pageSize;
    this.fill();
  }

  sortBy(column) {
    const again = this.order.column === column;
    this.order = {column, down: again ? !this.order.down : false};
    this.heads.forEach((head, i) => {
      if (columns[i] === column) head.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.show(this.list, this.links);
  }

  extend(count) {
    this.shown = count;
    this.fill();
  }

  fill() {
    const part = this.list.slice(0, this.shown), left = this.list.length - part.length;
    this.body.replaceChildren(...part.map(row => this.line(row)));
    const first = left > 0 ? `, the first ${part.length} shown` : "";
    const count = `${plural(this.list.length, "row")} of ${fixed(rows.length, 0)}`;
    this.count.textContent = `${count}${first}. Press a heading to sort.`;
    this.more.hidden = this.all.hidden = left <= 0;
  }

  line(row) {
    const link = this.links.get(row.index);
    return html("tr", {"data-row": row.index}, ...columns.map((column, i) => {
      const text = column.text(row);
      if (i === 0) {
        const name = link ? html("a", {href: `#${link}`, title: "To its charts"}, text || "unnamed") : text;
        return html("th", {scope: "row"}, name);
      }
      const key = column.name === "method" ? methodKey(row.method) : null;
      return html("td", {class: column.number ? "number" : column.name === "plan" ? "plan" : null}, key, text);
    }));
  }
}
