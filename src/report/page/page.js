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
  for (const text of data.left_out) place.append(html("p", {class: "message warning"}, html("b", {}, "Left out: "), text));
  for (const text of data.notes) place.append(html("p", {class: "message"}, html("b", {}, "Note: "), text));
}

/** One card a file: machine, commit, command. */
function addSources(place) {
  const list = html("div", {class: "sources"});
  data.files.forEach((file, index) => {
    const {machine} = file, facts = [["suite", file.suite], ["rows", fixed(rows.filter(row => row.file === index).length, 0)], ["measured", file.date.replace("T", " ").replace("Z", " UTC")],
      ["commit", file.commit], ["link", machine.link], ["driver", machine.driver], ["CUDA", machine.cuda], ["NCCL", machine.nccl], ["torch", machine.torch], ["command", file.command]];
    list.append(html("article", {class: "card source"}, html("h3", {}, machineOf(machine)), html("p", {class: "origin"}, file.name),
      html("dl", {}, ...facts.filter(([, value]) => value).flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, ["commit", "command"].includes(name) ? html("code", {}, value) : value)]))));
  });
  place.append(list);
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
