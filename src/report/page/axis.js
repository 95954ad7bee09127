// Scales and ticks.

/** Round steps that cut [low, high] into about `count` pieces. */
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(candidate => candidate >= raw * 0.999);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) list.push(i * step);
  return list;
}

/** Ticks that reach over both ends, or nearly so. */
function outerTicks(low, high, count) {
  const inner = ticks(low, high, count), step = inner.length > 1 ? inner[1] - inner[0] : 0;
  if (inner[0] > low + step * 0.3) inner.unshift(inner[0] - step);
  if (inner.at(-1) < high - step * 0.3) inner.push(inner.at(-1) + step);
  return inner;
}

/** As many digits as tell neighbours apart. */
function tickTexts(values) {
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : Math.abs(values[0]) || 1;
  let digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  if (Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) ++digits;
  return values.map(value => fixed(value, digits));
}

function linear(low, high, from, to) {
  const span = high - low || 1;
  return value => from + (value - low) / span * (to - from);
}

function logarithmic(low, high, from, to) {
  const scale = linear(Math.log(low), Math.log(high), from, to);
  return value => scale(Math.log(value));
}

/** Ticks of a logarithmic axis: as many of the round values as fit. */
function logTicks(low, high) {
  const sets = [[1], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.1, 1.2, 1.3, 1.5, 1.7, 2, 2.5, 3, 4, 5, 6, 7, 8, 9]];
  for (const set of sets) {
    const list = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
      for (const factor of set) {
        const value = factor * 10 ** power;
        if (value >= low * 0.9999 && value <= high * 1.0001) list.push(value);
      }
    if (list.length >= 4) return list;
  }
  return ticks(low, high, 5);
}

/** Drops labels that would touch the one before; `width` is that of a character. */
function apart(places, texts, width = 6.6) {
  let end = -Infinity;
  return places.map((x, i) => {
    const half = texts[i].length * width / 2;
    if (x - half < end + 8) return false;
    end = x + half;
    return true;
  });
}

function label(x, y, text, kind, anchor = "start") {
  return svg("text", {x: x.toFixed(1), y: y.toFixed(1), class: kind, "text-anchor": anchor}, text);
}

/** Vertical lines with their values below, and what they mean. */
function addAxisBelow(chart, {values, texts, scale, top, bottom, title, left, right}) {
  const shown = apart(values.map(scale), texts);
  values.forEach((value, i) => {
    const x = scale(value).toFixed(1);
    chart.append(svg("line", {x1: x, x2: x, y1: top, y2: bottom, class: value === 0 ? "axis" : "grid"}));
    if (shown[i]) chart.append(label(scale(value), bottom + 15, texts[i], "tick", "middle"));
  });
  chart.append(label((left + right) / 2, bottom + 31, title, "axis-title", "middle"));
}
