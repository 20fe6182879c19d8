// What a person changes: the threshold, the chosen node, the selection.
const state = {
  threshold: meta.threshold,
  node: -1,
  selected: new Uint8Array(count),
};
const listeners = {threshold: [], node: [], selection: []};
const on = (what, listener) => listeners[what].push(listener);
const tell = what => listeners[what].forEach(listener => listener());

const isUnknown = node =>
  data.label[node] < 0 && data.score[node] > Math.fround(state.threshold);
const verdict = node => isUnknown(node) ? "unknown" : predictedName(node);

const setThreshold = value => { state.threshold = value; tell("threshold"); };
const choose = node => { state.node = node; tell("node"); };
const select = (nodes, chosen = 1) => {
  for (const node of nodes) state.selected[node] = chosen;
  tell("selection");
};
const selectedNodes = () => {
  const found = [];
  for (let node = 0; node < count; node++) if (state.selected[node]) found.push(node);
  return found;
};
const COLUMNS = ["id", "role", "label", "prediction", "score", "spread", "group"];
const row = node => [meta.ids[node], ROLES[data.role[node]], labelName(node), verdict(node),
  data.score[node], data.spread[node], data.group[node] < 0 ? "" : data.group[node] + 1];
