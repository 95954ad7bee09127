// Puts the page together.

const section = id => document.getElementById(id);

/** system, light, dark: kept where the browser allows it. */
function addTheme(button) {
  const order = ["system", "light", "dark"];
  const set = theme => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    dispatchEvent(new Event("themechange"));
    try { localStorage.setItem("flux-theme", theme); } catch { /* a page without storage forgets */ }
  };
  let kept = null;
  try { kept = localStorage.getItem("flux-theme"); } catch { /* as above */ }
  let now = Math.max(order.indexOf(kept), 0);
  if (now > 0) set(order[now]);
  button.addEventListener("click", () => set(order[now = (now + 1) % order.length]));
}

function addMessages(place) {
  place.hidden = !data.left_out.length && !data.notes.length;
  const add = (kind, name, text) => place.append(html("p", {class: kind}, html("b", {}, name), text));
  for (const text of data.left_out) add("message warning", "Left out: ", text);
  for (const text of data.notes) add("message", "Note: ", text);
}

/** Where and how a file was measured: what it knows of that. */
function factsOf(file, index) {
  const {machine} = file, code = text => (text ? html("code", {}, text) : null);
  return [
    ["suite", file.suite], ["rows", fixed(rows.filter(row => row.file === index).length, 0)],
    ["measured", file.date.replace("T", " ").replace("Z", " UTC")], ["commit", code(file.commit)],
    ["link", machine.link], ["driver", machine.driver], ["CUDA", machine.cuda], ["NCCL", machine.nccl],
    ["torch", machine.torch], ["command", code(file.command)],
  ].filter(([, value]) => value);
}

/** One card a file: machine, commit, command. */
function addSources(place) {
  const cards = data.files.map((file, index) => html("article", {class: "card source"},
    html("h3", {}, machineOf(file.machine)), html("p", {class: "origin"}, file.name),
    html("dl", {}, ...factsOf(file, index).flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]))));
  place.append(html("div", {class: "sources"}, ...cards));
}

addPatterns();
addTheme(section("theme"));
section("made").textContent = `${plural(rows.length, "row")} from ${plural(data.files.length, "result file")}` +
  `${data.timelines.length ? `, ${plural(data.timelines.length, "timeline")}` : ""}. Made by ${data.made_by}.`;
addMessages(section("messages"));
addTimelines(section("timelines"));
if (rows.length) {
  addSources(section("sources"));
  addOverview(section("overview"));
  const cards = html("div", {class: "cards"}), table = new Table(section("rows"));
  const update = () => {
    const chosen = chosenRows(), links = new Map();
    for (const series of showCards(cards, chosen, view)) for (const row of series.rows) links.set(row.index, series.id);
    table.show(chosen, links);
  };
  addChoices(section("choose"), update);
  section("workloads").append(cards);
  update();
} else {
  for (const id of ["about", "sources", "overview", "choose", "workloads", "rows"]) section(id).hidden = true;
}
