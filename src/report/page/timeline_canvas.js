// The picture of a timeline on its canvas, in device pixels, in the colours of the theme.

/** Stripes for a kind that must be told apart without colour. */
function stripes(context, ink, paper) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.fillStyle = paper;
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = ink;
  pen.lineWidth = 1.4;
  for (const at of [-6, 0, 6]) pen.beginPath(), pen.moveTo(at - 1, 7), pen.lineTo(at + 7, -1), pen.stroke();
  return context.createPattern(tile, "repeat");
}

function timelineColours(context) {
  const style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(`--${name}`).trim();
  return {
    paper: colour("card"), ink: colour("ink"), soft: colour("soft"), grid: colour("grid"), lane: colour("lane"),
    mark: colour("accent"),
    fills: kinds.map(kind => (kind.name === "wait" ? stripes(context, colour("span-wait"), colour("lane"))
      : kind.name === "sum" ? stripes(context, colour("card"), colour("span-sum")) : colour(`span-${kind.name}`))),
  };
}

function drawTimeline(shown) {
  const {canvas, width, left, from, to, trace} = shown, {tops, height} = shown.layout();
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const colours = timelineColours(pen), x = linear(from, to, left, width);
  pen.fillStyle = colours.paper;
  pen.fillRect(0, 0, width, height);
  drawTimeTicks(pen, shown, colours, x, height);

  trace.lanes.forEach((lane, index) => {
    const top = tops[index];
    if (index === 0 || trace.lanes[index - 1].rank !== lane.rank) {
      pen.fillStyle = colours.ink;
      pen.font = "600 12px system-ui, sans-serif";
      pen.fillText(`rank ${lane.rank}`, 0, top - 5);
    }
    pen.fillStyle = colours.lane;
    const {bar, height: lineHeight} = shown.lanes, bars = top + Math.min((lineHeight - bar) / 2, 2);
    pen.fillRect(left, bars, width - left, bar);
    drawSpans(pen, lane, bars, colours, x, shown);
    pen.fillStyle = colours.soft;
    pen.font = "11px system-ui, sans-serif";
    if (left) pen.fillText(lane.name, 8, top + 14, left - 14);
    if (index === shown.lane && document.activeElement === canvas) {
      pen.strokeStyle = colours.mark;
      pen.lineWidth = 1.5;
      pen.strokeRect(left + 0.75, bars - 1, width - left - 1.5, bar + 2);
    }
  });
}

/** Bars in view; those narrower than half a pixel are drawn once a pixel. */
function drawSpans(pen, lane, y, colours, x, shown) {
  const drawn = new Array(kinds.length).fill(-Infinity), {bar} = shown.lanes;
  for (const span of lane.spans) {
    const kind = span[spanKind], begin = x(span[spanBegin]), end = x(span[spanBegin] + span[spanLength]);
    if (end < shown.left || begin > shown.width || end <= drawn[kind] + 0.5) continue;
    const start = Math.max(begin, shown.left), length = Math.max(Math.min(end, shown.width) - start, 0.5);
    drawn[kind] = start + length;
    if (kinds[kind].name === "step") {
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 0.8;
      pen.strokeRect(start, y - 1, length, bar + 2);
      continue;
    }
    pen.fillStyle = colours.fills[kind];
    pen.fillRect(start, y, length > 3 ? length - 0.6 : length, bar);
    if (span === shown.span) {
      pen.strokeStyle = colours.mark;
      pen.lineWidth = 2;
      pen.strokeRect(start, y, Math.max(length, 3), bar);
    }
  }
}

function drawTimeTicks(pen, shown, colours, x, height) {
  const {from, to, width, left} = shown, unit = timeUnit((to - from) / 1000), perUnit = unit.us * 1000;
  const values = ticks(from / perUnit, to / perUnit, (width - left) / 90), texts = tickTexts(values);
  const bottom = height - laneLook.foot;
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  values.forEach((value, i) => {
    const at = x(value * perUnit), half = pen.measureText(texts[i]).width / 2;
    pen.fillStyle = colours.grid;
    pen.fillRect(at, 0, 1, bottom + 4);
    pen.fillStyle = colours.soft;
    if (at - half >= 0 && at + half <= width) pen.fillText(texts[i], at, bottom + 16);
  });
  pen.fillText(`time since the first bar (${unit.name})`, (left + width) / 2, bottom + 31);
  pen.textAlign = "start";
}
