// The map: points on a canvas, marks on another one above it, a grid to find nodes by.
const PALETTE = ["#3b82c4", "#3a9d5d", "#8b6fc0", "#c2548d", "#2a9c9c", "#7d8c2b",
  "#a0704a", "#5b6ee0", "#4f8296", "#a45fb0"];
const ORANGE = "#e0702a", GREY = "#9aa4af", RAMP = 32;
const ramp = share => {  // from blue over pale violet to orange
  const stops = [[49, 108, 178], [176, 160, 200], [224, 112, 42]];
  const at = Math.min(1.999, Math.max(0, 2 * share)), low = Math.floor(at);
  const mix = k => Math.round(stops[low][k] + (stops[low + 1][k] - stops[low][k]) * (at - low));
  return `rgb(${mix(0)} ${mix(1)} ${mix(2)})`;
};
const RAMP_COLORS = Array.from({length: RAMP}, (_, i) => ramp(i / (RAMP - 1)));

const SCHEMES = {
  prediction: {
    colors: () => [...meta.classes.map((_, i) => PALETTE[i % PALETTE.length]), ORANGE],
    of: node => isUnknown(node) ? meta.classes.length : topClass(node),
    legend: () => [...meta.classes, "unknown"],
  },
  score: {
    colors: () => RAMP_COLORS,
    of: node => Math.min(RAMP - 1, Math.max(0, Math.floor(
      RAMP * (data.score[node] - range.low) / (range.high - range.low)))),
    legend: () => null,
  },
  group: {
    colors: () => [GREY, ...meta.groups.map((_, i) => [ORANGE, ...PALETTE][i % 11])],
    of: node => data.group[node] + 1,
    legend: () => ["in no group", ...meta.groups.map((_, i) => `group ${i + 1}`)],
  },
};

// Cells of a grid over the plane list their nodes, one cell after the other.
const CELLS = 256;
const grid = (() => {
  const column = value => Math.min(CELLS - 1, Math.max(0, Math.floor((value + 1) / 2 * CELLS)));
  const first = new Int32Array(CELLS * CELLS + 1), cells = new Int32Array(count);
  for (let node = 0; node < count; node++) {
    cells[node] = column(data.xy[2 * node + 1]) * CELLS + column(data.xy[2 * node]);
    first[cells[node] + 1]++;
  }
  for (let cell = 0; cell < CELLS * CELLS; cell++) first[cell + 1] += first[cell];
  const free = first.slice(), nodes = new Int32Array(count);
  for (let node = 0; node < count; node++) nodes[free[cells[node]]++] = node;
  const within = (x0, y0, x1, y1, visit) => {
    for (let j = column(y0); j <= column(y1); j++) {
      const begin = first[j * CELLS + column(x0)], end = first[j * CELLS + column(x1) + 1];
      for (let at = begin; at < end; at++) visit(nodes[at]);
    }
  };
  return {within};
})();

const view = {scale: 1, x: 0, y: 0, width: 0, height: 0};
const unit = () => view.scale * Math.min(view.width, view.height) * 0.47;
const toScreen = node => [
  view.width / 2 + (data.xy[2 * node] - view.x) * unit(),
  view.height / 2 - (data.xy[2 * node + 1] - view.y) * unit()];
const toPlane = (x, y) => [
  view.x + (x - view.width / 2) / unit(), view.y - (y - view.height / 2) / unit()];

const nearest = (px, py, radius = 10) => {
  const [x, y] = toPlane(px, py), reach = radius / unit();
  let best = -1, least = reach * reach;
  grid.within(x - reach, y - reach, x + reach, y + reach, node => {
    const dx = data.xy[2 * node] - x, dy = data.xy[2 * node + 1] - y;
    const distance = dx * dx + dy * dy;
    if (distance <= least) { least = distance; best = node; }
  });
  return best;
};

const contexts = () => [byId("points").getContext("2d"), byId("marks").getContext("2d")];
const clear = context => {
  const sharp = window.devicePixelRatio || 1;
  context.setTransform(sharp, 0, 0, sharp, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
};
const radius = () => Math.max(1, Math.min(5, 90 / Math.sqrt(count) * Math.sqrt(view.scale)));

let colorOf = null;  // [count] number of the color
let ordered = null;  // nodes by color, the last color on top
const recolor = () => {
  const scheme = SCHEMES[byId("color").value], colors = scheme.colors();
  const amounts = new Int32Array(colors.length + 1);
  colorOf = new Uint16Array(count);
  for (let node = 0; node < count; node++) amounts[(colorOf[node] = scheme.of(node)) + 1]++;
  for (let color = 0; color < colors.length; color++) amounts[color + 1] += amounts[color];
  const free = amounts.slice(), nodes = new Int32Array(count);
  for (let node = 0; node < count; node++) nodes[free[colorOf[node]]++] = node;
  ordered = {nodes, first: amounts, colors};
};

const drawPoints = () => {
  const [context] = contexts(), r = radius();
  clear(context);
  const {nodes, first, colors} = ordered, k = unit(), round = r >= 2;
  const left = view.width / 2 - view.x * k, top = view.height / 2 + view.y * k;
  context.globalAlpha = count > 20000 ? 0.75 : 0.9;
  for (let color = 0; color < colors.length; color++) {
    context.fillStyle = colors[color];
    if (round) context.beginPath();
    for (let at = first[color]; at < first[color + 1]; at++) {
      const node = nodes[at];
      const x = left + data.xy[2 * node] * k, y = top - data.xy[2 * node + 1] * k;
      if (x < -r || y < -r || x > view.width + r || y > view.height + r) continue;
      if (!round) { context.fillRect(x - r, y - r, 2 * r, 2 * r); continue; }
      context.moveTo(x + r, y);
      context.arc(x, y, r, 0, 7);
    }
    if (round) context.fill();
  }
};

let hovered = -1, dragged = null;
const ring = (context, node, size, width) => {
  const [x, y] = toScreen(node);
  context.lineWidth = width;
  context.beginPath();
  context.arc(x, y, size, 0, 7);
  context.stroke();
};
const drawMarks = () => {
  const context = contexts()[1], style = getComputedStyle(document.documentElement);
  clear(context);
  context.strokeStyle = style.getPropertyValue("--ink");
  const r = radius();
  if (state.node >= 0) {
    const [x, y] = toScreen(state.node);
    for (const {node, weight} of neighborsOf(state.node)) {
      if (node === state.node) continue;
      const [nx, ny] = toScreen(node);
      context.globalAlpha = 0.35;
      context.lineWidth = meta.hasAttention ? Math.max(0.5, 10 * weight) : 1;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(nx, ny);
      context.stroke();
    }
    context.globalAlpha = 1;
    ring(context, state.node, r + 5, 2.5);
  }
  context.globalAlpha = 0.8;
  if (anySelected) {
    for (let node = 0; node < count; node++) {
      if (state.selected[node]) ring(context, node, r + 1.5, 1);
    }
  }
  context.globalAlpha = 1;
  if (hovered >= 0) ring(context, hovered, r + 3, 1.5);
  if (dragged && dragged.box) {
    const {x, y, toX: right, toY: below} = dragged;
    context.setLineDash([4, 3]);
    context.lineWidth = 1;
    context.strokeRect(Math.min(x, right), Math.min(y, below), Math.abs(right - x), Math.abs(below - y));
    context.setLineDash([]);
  }
};

let anySelected = false, pending = 0, stale = false;
const redraw = (points = true) => {
  stale ||= points;
  pending ||= requestAnimationFrame(() => {
    pending = 0;
    if (stale) drawPoints();
    stale = false;
    drawMarks();
  });
};
const fit = () => {
  const box = byId("plane").getBoundingClientRect(), sharp = window.devicePixelRatio || 1;
  [view.width, view.height] = [box.width, box.height];
  for (const id of ["points", "marks"]) {
    byId(id).width = Math.round(box.width * sharp);
    byId(id).height = Math.round(box.height * sharp);
  }
  redraw();
};
const zoom = (factor, x = view.width / 2, y = view.height / 2) => {
  const before = toPlane(x, y);
  view.scale = Math.min(200, Math.max(0.5, view.scale * factor));
  const after = toPlane(x, y);
  view.x += before[0] - after[0];
  view.y += before[1] - after[1];
  redraw();
};
const showAll = () => { Object.assign(view, {scale: 1, x: 0, y: 0}); redraw(); };

const legend = () => {
  const scheme = SCHEMES[byId("color").value], names = scheme.legend();
  const colors = scheme.colors(), list = byId("legend");
  list.replaceChildren();
  const swatch = color => {
    const found = make("span", {class: "swatch", "aria-hidden": "true"});
    found.style.backgroundColor = color;
    return found;
  };
  if (names) {
    list.append(...names.map((name, i) => make("li", {}, swatch(colors[i]), name)));
  } else {
    const ends = [range.low, range.high].map(digits);
    const strip = make("span", {class: "strip", "aria-hidden": "true"});
    strip.style.background = `linear-gradient(to right, ${RAMP_COLORS.join(", ")})`;
    list.append(make("li", {}, ends[0], strip, ends[1]));
  }
};

const tip = (node, x, y) => {
  const box = byId("tip");
  box.hidden = node < 0;
  if (node < 0) return;
  box.replaceChildren(make("strong", {}, meta.ids[node]),
    make("span", {}, verdict(node)),
    make("span", {}, `score ${digits(data.score[node])}`));
  const right = x > view.width - 190;
  box.style.left = right ? "" : `${x + 14}px`;
  box.style.right = right ? `${view.width - x + 14}px` : "";
  box.style.top = `${Math.max(4, Math.min(view.height - 70, y - 12))}px`;
};
const hover = (x, y) => {
  const node = nearest(x, y);
  tip(node, x, y);
  if (node !== hovered) { hovered = node; redraw(false); }
};

const boxed = ({x, y, toX: right, toY: below}) => {
  const [x0, y1] = toPlane(Math.min(x, right), Math.min(y, below));
  const [x1, y0] = toPlane(Math.max(x, right), Math.max(y, below));
  const found = [];
  grid.within(x0, y0, x1, y1, node => {
    const px = data.xy[2 * node], py = data.xy[2 * node + 1];
    if (px >= x0 && px <= x1 && py >= y0 && py <= y1) found.push(node);
  });
  return found;
};

const mapPointer = plane => {
  const local = event => {
    const box = plane.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  plane.addEventListener("pointerdown", event => {
    const [x, y] = local(event);
    plane.setPointerCapture(event.pointerId);
    dragged = {x, y, toX: x, toY: y, startX: view.x, startY: view.y, box: event.shiftKey, moved: false};
  });
  plane.addEventListener("pointermove", event => {
    const [x, y] = local(event);
    if (!dragged) { hover(x, y); return; }
    dragged.moved ||= Math.hypot(x - dragged.x, y - dragged.y) > 4;
    [dragged.toX, dragged.toY] = [x, y];
    if (!dragged.box && dragged.moved) {
      view.x = dragged.startX - (x - dragged.x) / unit();
      view.y = dragged.startY + (y - dragged.y) / unit();
    }
    redraw(!dragged.box);
  });
  plane.addEventListener("pointerup", event => {
    if (!dragged) return;
    const ended = dragged;
    dragged = null;
    if (ended.box && ended.moved) {
      const nodes = boxed(ended);
      select(nodes);
      say(`${whole.format(nodes.length)} nodes selected.`);
    } else if (!ended.moved) {
      const node = nearest(...local(event));
      if (node >= 0) choose(node);
    }
    redraw();
  });
  plane.addEventListener("pointercancel", () => { dragged = null; redraw(); });
  plane.addEventListener("pointerleave", () => { if (!dragged) { hovered = -1; tip(-1); redraw(false); } });
  plane.addEventListener("wheel", event => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), ...local(event));
  }, {passive: false});
};

const mapKeys = plane => plane.addEventListener("keydown", event => {
  const step = 40 / unit();
  const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
  if (moves[event.key]) {
    view.x += moves[event.key][0] * step;
    view.y += moves[event.key][1] * step;
    redraw();
  } else if (event.key === "+" || event.key === "=") zoom(1.4);
  else if (event.key === "-") zoom(1 / 1.4);
  else if (event.key === "0") showAll();
  else return;
  event.preventDefault();
});

const map = () => {
  const plane = byId("plane"), color = byId("color");
  byId("map-about").textContent = `The members' hidden layers in two dimensions (${meta.projection}): ` +
    "nodes that the model takes for alike are close. Choose one to see why it is called what it is.";
  if (!meta.groups.length) color.querySelector("[value=group]").disabled = true;
  mapPointer(plane);
  mapKeys(plane);
  byId("zoom-in").addEventListener("click", () => zoom(1.4));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
  byId("zoom-all").addEventListener("click", showAll);
  color.addEventListener("change", () => { recolor(); legend(); redraw(); });
  on("threshold", () => { if (color.value === "prediction") { recolor(); redraw(); } });
  on("node", () => redraw(false));
  on("selection", () => { anySelected = state.selected.includes(1); redraw(false); });
  new ResizeObserver(fit).observe(plane);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  recolor();
  legend();
};
