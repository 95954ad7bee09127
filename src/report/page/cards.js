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
  const forced = series.rows.filter(row => row.variant);
  const place = (m, method) => JSON.stringify([m, method]);
  const beside = new Set(forced.flatMap(row => [place(row.m, row.method), place(row.m, "none")]));
  return groupsOf(series, row => row.variant || beside.has(place(row.m, row.method)));
}

/** What marks in bars mean. */
function legendOf(series) {
  const key = (width, ...shapes) => svg("svg", {class: "key", width, height: 14, "aria-hidden": true}, ...shapes);
  const patch = (x, look) => svg("rect", {x, y: 1, width: 15, height: 12, ...look});
  const spread = key(24, svg("path", {class: "spread", d: "M1 7H23M1 4v6M23 4v6"}));
  const list = html("ul", {class: "legend"});
  if (series.exchanges) {
    const methods = series.methods.slice(0, 2).map((method, i) => patch(i * 17, {fill: fillOf(method)}));
    list.append(html("li", {}, key(15, patch(0, {class: "gemm"})), "GEMM alone"),
      html("li", {}, key(17 * methods.length - 2, ...methods), "ECT, by method"));
  }
  if (series.rows.some(row => row.floor_us))
    list.append(html("li", {}, key(8, svg("path", {class: "floor", d: "M4 0V14"})), "floor"));
  list.append(html("li", {}, spread, "10th to 90th percentile"));
  return list;
}

function fillCard(card, series, view) {
  const own = groupsOf(series, row => row.variant === "");
  card.append(legendOf(series));
  if (own.length) card.append(barFigure(series.exchanges ? "Time: GEMM + ECT" : "Time", own, view));
  if (drawableMeasures(series).length) card.append(new Reading(series).element);
  if (series.rows.some(row => row.variant))
    card.append(barFigure("Ablations: what was forced, beside the plan’s own choice", ablationGroups(series), view));
}

/** About as high as it will be, so that the page does not jump. */
function expectedHeight(series) {
  return 200 + series.rows.length * 19 + series.ms.length * 34 + Math.ceil(drawableMeasures(series).length / 2) * 250;
}

function cardOf(series, view) {
  const {first} = series, file = data.files[first.file];
  const title = html("h3", {id: `${series.id}-title`}, first.workload || "unnamed", " ",
    html("span", {class: "operation"}, operationOf(first)));
  const card = html("article", {class: "card", id: series.id, tabindex: -1, "aria-labelledby": title.id,
    style: `min-height:${expectedHeight(series)}px`}, title,
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
