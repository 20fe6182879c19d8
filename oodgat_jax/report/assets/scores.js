// The histogram, the slider, and the figures beside them.
const range = (() => {
  let low = Infinity, high = -Infinity;
  for (const scores of [data.score, data.unlabeledScores]) {
    for (const score of scores) {
      if (score < low) low = score;
      if (score > high) high = score;
    }
  }
  const pad = (high - low || 1) * 0.02;
  return {low: low - pad, high: high + pad};
})();
const STEPS = 1000, BINS = 64;
const PLOT = {width: 640, left: 8, right: 8, axis: 24};
const atStep = step => range.low + (range.high - range.low) * step / STEPS;
const toX = score => PLOT.left +
  (PLOT.width - PLOT.left - PLOT.right) * (score - range.low) / (range.high - range.low);
const toScore = x => range.low + (range.high - range.low) *
  Math.min(1, Math.max(0, (x - PLOT.left) / (PLOT.width - PLOT.left - PLOT.right)));

const binned = scores => {
  const found = new Float64Array(BINS);
  for (const score of scores) {
    const at = Math.floor(BINS * (score - range.low) / (range.high - range.low));
    found[Math.min(BINS - 1, at)]++;
  }
  return found;
};
const ofRole = role => data.score.filter((_, node) => data.role[node] === role);

const ROWS = [
  {name: "learned from", kind: "learned", scores: ofRole(LEARNED), height: 56},
  {name: "held out", kind: "held", scores: ofRole(HELD_OUT), height: 56},
  {name: "unlabeled", kind: "unlabeled", scores: data.unlabeledScores, height: 130},
].filter(each => each.scores.length);

const histogram = () => {
  const svg = byId("histogram");
  let top = 0;
  const bars = [];
  for (const {name, kind, scores, height} of ROWS) {
    const counts = binned(scores), most = Math.max(...counts);
    svg.append(draw("text", {x: PLOT.left, y: top + 15, class: "row"},
      `${name}, ${whole.format(scores.length)}`));
    counts.forEach((amount, bin) => {
      if (!amount) return;
      const size = Math.max(1, (height - 20) * amount / most);
      const x = toX(atStep(STEPS * bin / BINS));
      const wide = toX(atStep(STEPS * (bin + 1) / BINS)) - x - 1;
      const shape = draw("rect", {x, y: top + height - size, width: wide, height: size,
        class: `column ${kind}`}, draw("title", {}, `${whole.format(amount)} nodes`));
      bars.push({shape, middle: atStep(STEPS * (bin + 0.5) / BINS)});
      svg.append(shape);
    });
    svg.append(draw("line", {x1: PLOT.left, x2: PLOT.width - PLOT.right,
      y1: top + height + 0.5, y2: top + height + 0.5, class: "base"}));
    top += height + 6;
  }
  for (let tick = 0; tick <= 5; tick++) {
    const score = atStep(STEPS * tick / 5);
    svg.append(draw("text", {x: toX(score), y: top + 14, class: "tick",
      "text-anchor": tick === 0 ? "start" : tick === 5 ? "end" : "middle"},
      (Math.round(100 * score) / 100 || 0).toFixed(2)));
  }
  svg.setAttribute("viewBox", `0 0 ${PLOT.width} ${top + PLOT.axis}`);
  const line = draw("line", {y1: 0, y2: top, class: "threshold"});
  const handle = draw("circle", {cy: top, r: 7, class: "handle"});
  svg.append(line, handle);
  const place = () => {
    const x = Math.min(PLOT.width - 1, Math.max(1, toX(state.threshold)));
    for (const name of ["x1", "x2"]) line.setAttribute(name, x);
    handle.setAttribute("cx", x);
    bars.forEach(({shape, middle}) =>
      shape.classList.toggle("above", middle > state.threshold));
  };
  const move = event => {
    const box = svg.getBoundingClientRect();
    setThreshold(toScore((event.clientX - box.left) * PLOT.width / box.width));
  };
  svg.addEventListener("pointerdown", event => {
    svg.setPointerCapture(event.pointerId);
    move(event);
  });
  svg.addEventListener("pointermove", event => { if (event.buttons & 1) move(event); });
  on("threshold", place);
};

const figure = (id, value, text, more) => {
  const output = byId(id);
  output.textContent = text;
  output.dataset.value = value;
  byId(`${id}-more`).textContent = more;
};
const figures = () => {
  const found = measure(state.threshold);
  const {called, unlabeled, calibration, lost, low, high, least} = found;
  figure("called", called, whole.format(called),
    `${percent(called / (unlabeled || 1))} of ${whole.format(unlabeled)} unlabeled nodes`);
  byId("summary").textContent = `${whole.format(called)} of ${whole.format(unlabeled)} ` +
    `unlabeled nodes are called unknown at the threshold ${digits(state.threshold)}.`;
  if (calibration) {
    figure("lost", lost / calibration, percent(lost / calibration),
      `between ${percent(low)} and ${percent(high)}, from ${whole.format(lost)} of ` +
      `${whole.format(calibration)} held-out nodes`);
    Object.assign(byId("lost").dataset, {low, high});
    figure("least", least / unlabeled, percent(least / unlabeled),
      `${whole.format(least)} of the unlabeled nodes, or more`);
  } else {
    figure("lost", "", "not known", "too few held-out nodes, or another graph");
    figure("least", "", "not known", "too few held-out nodes, or another graph");
  }
};

const thresholdControls = () => {
  const slider = byId("slider"), exact = byId("exact");
  slider.addEventListener("input", () => setThreshold(atStep(Number(slider.value))));
  exact.addEventListener("change", () => {
    if (exact.value !== "" && isFinite(exact.value)) setThreshold(Number(exact.value));
  });
  byId("reset").addEventListener("click", () => setThreshold(meta.threshold));
  let waiting = 0;
  on("threshold", () => {
    slider.value = Math.round(STEPS * (state.threshold - range.low) / (range.high - range.low));
    slider.setAttribute("aria-valuetext", digits(state.threshold));
    slider.dataset.threshold = state.threshold;  // the slider itself has steps
    if (document.activeElement !== exact) exact.value = Number(state.threshold.toPrecision(7));
    figures();
    clearTimeout(waiting);
    waiting = setTimeout(() => say(byId("summary").textContent), 600);
  });
  byId("threshold-note").textContent = !data.calibrationScores ? "" :
    `Both bounds hold with ${percent(meta.confidence)} confidence for a threshold that was ` +
    "chosen without looking at them, if the labeled nodes are a random sample of the known " +
    "ones. After moving the line until a figure pleases, they are a guide and no promise.";
};
