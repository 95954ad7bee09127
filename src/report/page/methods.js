// The look of a method: the same colour, pattern, marker and name wherever it appears. Colours are --method-... of the
// style; they differ in lightness too, and no two methods share pattern and marker.

const knownMethods = {
  flux: {label: "FLUX", marker: "circle", pattern: "solid",
    about: "the fused kernel with its plan"},
  flux_open: {label: "FLUX, gates open", marker: "ring", pattern: "rising",
    about: "the fused kernel with nothing to wait for: what fusion itself costs"},
  none: {label: "one after the other", marker: "square", pattern: "solid",
    about: "the fastest GEMM and the fastest exchange, one after the other"},
  nccl: {label: "NCCL", marker: "frame", pattern: "grid",
    about: "the fastest GEMM and NCCL's collective, one after the other"},
  beside: {label: "side by side", marker: "frame", pattern: "falling",
    about: "GEMM and exchange at once, neither waiting for the other: no valid result; what each costs the other"},
  comm: {label: "exchange alone", marker: "bar", pattern: "dots",
    about: "the fastest exchange of the same bytes, without a GEMM"},
  chunked: {label: "chunked", marker: "triangle", pattern: "upright",
    about: "the GEMM cut into as many pieces as there are ranks, copies of whole shards beside them"},
  torch_symm_mem: {label: "torch symm. memory", marker: "wedge", pattern: "dots",
    about: "PyTorch's asynchronous tensor parallelism"},
  cublaslt: {label: "cuBLASLt", marker: "diamond", pattern: "level",
    about: "the fastest proposal of cuBLASLt"},
  cutlass: {label: "stock CUTLASS", marker: "cross", pattern: "crossed",
    about: "the fastest configuration of the stock CUTLASS kernel"},
  megatron_style: {label: "Megatron style", marker: "plus", pattern: "rising wide",
    about: "collectives as Megatron places them"},
  vllm_style: {label: "vLLM style", marker: "star", pattern: "falling wide",
    about: "collectives as vLLM places them"},
  transformer_engine: {label: "Transformer Engine", marker: "bar", pattern: "grid",
    about: "user buffers of Transformer Engine"},
};
const methodOrder = Object.keys(knownMethods);

function methodOf(name) {
  const about = "a method this page has no words for";
  return knownMethods[name] || {label: name, marker: "dot", pattern: "rising wide", about};
}
const colourOf = name => `var(--method-${knownMethods[name] ? name : "other"})`;
const fillOf = name => `url(#fill-${knownMethods[name] ? name : "other"})`;
const labelOf = row => methodOf(row.method).label + (row.variant ? ` · ${row.variant}` : "");

/** Known ones in their order, then others by name. */
function sortMethods(names) {
  const place = name => (knownMethods[name] ? methodOrder.indexOf(name) : methodOrder.length);
  return [...names].sort((a, b) => place(a) - place(b) || a.localeCompare(b));
}

const hatches = {
  solid: "",
  rising: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5",
  falling: "M-1 -1L7 7M5 -1L7 1M-1 5L1 7",
  "rising wide": "M-1 7L7 -1",
  "falling wide": "M-1 -1L7 7",
  upright: "M1.5 0V6M4.5 0V6",
  level: "M0 1.5H6M0 4.5H6",
  crossed: "M0 0L6 6M6 0L0 6",
  grid: "M3 0V6M0 3H6",
  dots: "M1 1h1.6v1.6h-1.6zM4 4h1.6v1.6h-1.6z",
};

/** One hidden picture holds the patterns of all methods; `url(#fill-flux)` names one from any chart. */
function addPatterns() {
  const patterns = [...methodOrder, "other"].map(name => svg("pattern",
    {id: `fill-${name}`, width: 6, height: 6, patternUnits: "userSpaceOnUse"},
    svg("rect", {width: 6, height: 6, fill: colourOf(name)}),
    svg("path", {d: hatches[methodOf(name).pattern], class: "hatch"})));
  const hidden = {class: "patterns", "aria-hidden": true, width: 0, height: 0};
  document.body.prepend(svg("svg", hidden, svg("defs", {}, ...patterns)));
}

const markers = {
  circle: r => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  square: r => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  triangle: r => `M0 ${-r * 1.2}L${r * 1.1} ${r * 0.8}H${-r * 1.1}z`,
  wedge: r => `M0 ${r * 1.2}L${r * 1.1} ${-r * 0.8}H${-r * 1.1}z`,
  diamond: r => `M0 ${-r * 1.3}L${r * 1.3} 0L0 ${r * 1.3}L${-r * 1.3} 0z`,
  cross: r => `M${-r} ${-r}L${r} ${r}M${r} ${-r}L${-r} ${r}`,
  plus: r => `M0 ${-r * 1.2}V${r * 1.2}M${-r * 1.2} 0H${r * 1.2}`,
  star: r => {
    const high = r * 1.3, wide = r * 1.1, side = r * 0.7;
    return `M0 ${-high}V${high}M${-wide} ${-side}L${wide} ${side}M${wide} ${-side}L${-wide} ${side}`;
  },
  bar: r => `M${-r * 1.3} ${-r * 0.6}h${2.6 * r}v${1.2 * r}h${-2.6 * r}z`,
};
markers.ring = markers.circle;
markers.frame = markers.square;
markers.dot = r => markers.circle(r * 0.6);

function marker(name, x, y, r = 4) {
  const kind = methodOf(name).marker;
  const look = ["ring", "frame"].includes(kind) ? "open" : ["cross", "plus", "star"].includes(kind) ? "strokes" : "full";
  return svg("path", {d: markers[kind](r), transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
    class: `marker ${look}`, style: `--colour:${colourOf(name)}`});
}

/** Marker and filled patch, for legends. */
function methodKey(name) {
  return svg("svg", {class: "key", width: 34, height: 14, viewBox: "0 0 34 14", "aria-hidden": true},
    svg("rect", {x: 0, y: 1, width: 15, height: 12, fill: fillOf(name)}), marker(name, 26, 7));
}
