// What is shown: words, files, operations, workloads, ranks, and methods one by one.

const view = {words: "", file: "", op: "", workload: "", tp: "", variants: "", hidden: new Set(), bars: "relative"};

/** All that the search looks at, once a row, between spaces. */
const searched = rows.map(row => [
  "", row.workload, row.op, operationOf(row), row.method, methodOf(row.method).label, row.variant,
  `m=${row.m} n=${row.n} k=${row.k} tp=${row.tp}`, row.dtype, row.weight, row.epilogue, row.world, row.link,
  row.timing, row.cache, row.phase, row.plan, data.files[row.file].name, data.files[row.file].commit, "",
].join(" ").toLowerCase());

/** Words may be parts of longer ones, but m=64 is not m=640. */
const wordsOf = text => text.toLowerCase().split(/\s+/).filter(Boolean).map(word => (word.includes("=") ? ` ${word} ` : word));

function chosenRows() {
  const words = wordsOf(view.words);
  const fits = (wanted, value) => wanted === "" || wanted === String(value);
  return rows.filter(row =>
    fits(view.file, row.file) && fits(view.op, row.op) && fits(view.workload, row.workload) && fits(view.tp, row.tp) &&
    fits(view.variants, row.variant === "" ? "own" : "forced") && !view.hidden.has(row.method) &&
    words.every(word => searched[row.index].includes(word)));
}

/** A list to choose from, unless there is but one thing in it. */
function choice(key, title, all, options, changed) {
  if (options.length < 2) return null;
  return html("label", {}, html("span", {}, title),
    html("select", {name: key, onchange: event => { view[key] = event.target.value; changed(); }},
      html("option", {value: ""}, all), ...options.map(([value, text]) => html("option", {value}, text))));
}

function distinct(of) {
  return [...new Set(rows.map(of))];
}

function methodToggle(method, changed) {
  const {label: name, about} = methodOf(method);
  const button = html("button",
    {type: "button", class: "method", "aria-pressed": "true", "data-method": method, title: about}, methodKey(method), name);
  button.addEventListener("click", () => {
    const hidden = !view.hidden.has(method);
    if (hidden) view.hidden.add(method);
    else view.hidden.delete(method);
    button.setAttribute("aria-pressed", String(!hidden));
    changed();
  });
  return button;
}

let waiting = 0;

/** Whether words were typed that are not shown yet. */
const choosing = () => waiting !== 0;

function addChoices(section, changed) {
  const search = html("input", {type: "search", name: "words", placeholder: "e.g. gpt3 m=4096 graph", autocomplete: "off"});
  search.addEventListener("input", () => {
    view.words = search.value;
    clearTimeout(waiting);
    waiting = setTimeout(() => { waiting = 0; changed(); }, 120);
  });
  const bars = html("select", {name: "bars", onchange: event => { view.bars = event.target.value; changed(); }},
    html("option", {value: "relative"}, "multiples of GEMM alone"), html("option", {value: "time"}, "time"));
  const ablations = rows.some(row => row.variant) ? [["own", "without"], ["forced", "alone"]] : [];
  section.append(html("form", {class: "choices", onsubmit: event => event.preventDefault()},
    html("label", {class: "wide"}, html("span", {}, "Words"), search),
    choice("file", "File", "all files", data.files.map((file, i) => [i, file.name]), changed),
    choice("op", "Operation", "all operations", distinct(row => row.op).map(op => [op, operations[op] || op]), changed),
    choice("workload", "Workload", "all workloads", distinct(row => row.workload).map(name => [name, name]), changed),
    choice("tp", "Ranks", "any number", distinct(row => row.tp).sort((a, b) => a - b).map(tp => [tp, tp]), changed),
    choice("variants", "Ablations", "with", ablations, changed),
    html("label", {}, html("span", {}, "Bars in"), bars)),
    html("div", {class: "methods", role: "group", "aria-label": "Methods; press to hide or show one"},
      ...sortMethods(distinct(row => row.method)).map(method => methodToggle(method, changed))));
}
