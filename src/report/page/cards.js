// A card for each series. It is drawn when it comes near the screen, so that thousands of rows open at once.

const opened = new WeakMap();
const whenNear = new IntersectionObserver(entries => {
  for (const entry of entries)
    if (entry.isIntersecting) openCard(entry.target);
}, {rootMargin: "800px"});

function openCard(card) {
  const draw = opened.get(card);
  opened.delete(card);
  whenNear.unobserve(card);
  if (!draw) return;
  draw();
  card.style.minHeight = "";
}

function barFigure(title, groups, view) {
  const place = html("div", {class: "plot"});
  const relative = view.bars === "relative";
  drawAtWidth(place, width => drawBars(place, groups, relative, width));
  return html("figure", {class: "bars"}, html("figcaption", {}, html("b", {}, title)), place);
}

/** Groups of m with at least one row that `keep` takes. */
function groupsOf(series, keep) {
  return series.ms.map(m => ({m, rows: rowsAt(series, m).filter(keep)})).filter(group => group.rows.length);
}

/** What was forced, beside the plan's own choice of the same method and one after the other. */
function ablationGroups(series) {
  const forced = new Set(series.rows.filter(row => row.variant).map(row => JSON.stringify([row.m, row.method])));
  const sizes = new Set(series.rows.filter(row => row.variant).map(row => row.m));
  return groupsOf(series, row => row.variant || forced.has(JSON.stringify([row.m, row.method])) || (row.method === "none" && sizes.has(row.m)));
}

function legendOf(series) {
  const items = series.exchanges ? [html("li", {}, svg("svg", {class: "key", width: 15, height: 14, "aria-hidden": true}, svg("rect", {class: "gemm", y: 1, width: 15, height: 12})), "GEMM alone"),
    html("li", {}, svg("svg", {class: "key", width: 34, height: 14, "aria-hidden": true}, ...series.methods.slice(0, 2).map((method, i) => svg("rect", {x: i * 17, y: 1, width: 15, height: 12, fill: fillOf(method)}))), "ECT, by method"),
    html("li", {}, svg("svg", {class: "key", width: 8, height: 14, "aria-hidden": true}, svg("path", {class: "floor", d: "M4 0V14"})), "floor")] : [];
  return html("ul", {class: "legend"}, ...items, html("li", {}, svg("svg", {class: "key", width: 24, height: 14, "aria-hidden": true}, svg("path", {class: "spread", d: "M1 7H23M1 4v6M23 4v6"})), "10th to 90th percentile"));
}

function fillCard(card, series, view) {
  const own = groupsOf(series, row => row.variant === "");
  card.append(legendOf(series));
  if (own.length) card.append(barFigure(series.exchanges ? "Time: GEMM + ECT" : "Time", own, view));
  const lines = lineCharts(series);
  if (lines) card.append(lines);
  if (series.rows.some(row => row.variant)) card.append(barFigure("Ablations: what was forced, beside the plan’s own choice", ablationGroups(series), view));
}

/** About as high as it will be, so that the page does not jump. */
function expectedHeight(series) {
  return 200 + series.rows.length * 19 + series.ms.length * 34 + Math.ceil(drawableMeasures(series).length / 2) * 250;
}

function cardOf(series, view) {
  const {first} = series, file = data.files[first.file];
  const card = html("article", {class: "card", id: series.id, tabindex: -1, "aria-labelledby": `${series.id}-title`, style: `min-height:${expectedHeight(series)}px`},
    html("h3", {id: `${series.id}-title`}, first.workload || "unnamed", " ", html("span", {class: "operation"}, operationOf(first))),
    html("p", {class: "setting"}, settingOf(first)),
    html("p", {class: "origin"}, `${machineOf(file.machine)} · ${file.date.slice(0, 10)} · ${file.name}`));
  opened.set(card, () => fillCard(card, series, view));
  return card;
}

/** Shows the series of `chosen` rows in `place`. */
function showCards(place, chosen, view) {
  const list = seriesOf(chosen);
  whenNear.disconnect();
  const cards = list.map(series => cardOf(series, view));
  place.replaceChildren(...cards);
  if (!cards.length) place.append(html("p", {class: "message"}, "No row fits what was chosen above."));
  for (const card of cards) whenNear.observe(card);
  return list;
}

addEventListener("beforeprint", () => document.querySelectorAll("article.card").forEach(openCard));
