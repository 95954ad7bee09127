// Numbers with units, and elements.

const none = "–";

/** `value` with so many significant digits, never as 1e5; thousands apart from 10 000 on. */
function significant(value, digits = 3) {
  if (value === null || value === undefined) return none;
  return value === 0 ? "0" : fixed(value, digitsBehind(value, digits));
}

/** How many digits stand behind the point where `value` has so many in all. */
function digitsBehind(value, digits) {
  const magnitude = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  return Math.min(Math.max(digits - 1 - magnitude, 0), 9);
}

/** `value` with so many digits behind the point, and a real minus. */
function fixed(value, digits) {
  if (value === null || value === undefined) return none;
  const text = Math.abs(value).toFixed(digits);
  const point = text.indexOf(".");
  let whole = point < 0 ? text : text.slice(0, point);
  if (whole.length > 4) whole = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const negative = value < 0 && Number(text) !== 0;
  return (negative ? "−" : "") + whole + (point < 0 ? "" : text.slice(point));
}

const timeUnits = [{name: "s", us: 1e6}, {name: "ms", us: 1e3}, {name: "µs", us: 1}];

/** The unit in which a time is best read. */
function timeUnit(us) {
  return timeUnits.find(unit => Math.abs(us) >= unit.us) || timeUnits[2];
}

/** A time in the unit and with the digits that suit `like`, so that a column of numbers can be compared by eye. */
function timeLike(us, like) {
  if (us === null || us === undefined) return none;
  const unit = timeUnit(like), digits = like ? digitsBehind(like / unit.us, 4) : 0;
  return fixed(us / unit.us, digits) + "\u00a0" + unit.name;
}

/** "587.5 ms": four digits, so that one per cent can be told apart. */
function time(us) {
  return timeLike(us, us);
}

function scientific(value) {
  return value === null || value === undefined ? none : value.toExponential(1).replace("-", "−");
}

function plural(count, word) {
  return `${fixed(count, 0)} ${word}${count === 1 ? "" : "s"}`;
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

/** An HTML element; text in `children` is never read as HTML. */
function html(name, attributes = {}, ...children) {
  return build(document.createElement(name), attributes, children);
}

/** An SVG element. */
function svg(name, attributes = {}, ...children) {
  return build(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/** A picture as wide as its place, in CSS pixels, so that text keeps its size at any width. */
function picture(width, height, label) {
  const viewBox = `0 0 ${width} ${height}`;
  return svg("svg", {class: "chart", width, height, viewBox, role: "img", "aria-label": label});
}

/** Whether each place for a chart has one. They are drawn a moment after they are put into the page. */
function allDrawn() {
  return [...document.querySelectorAll(".plot")].every(place => place.firstChild);
}

/** Calls draw(width) now and whenever the width of `place` changes. */
function drawAtWidth(place, draw) {
  let drawn = 0;
  const again = () => {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && width !== drawn) draw(drawn = width);
  };
  new ResizeObserver(() => requestAnimationFrame(again)).observe(place);
  again();
}
