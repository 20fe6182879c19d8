// The chosen node: what it is called, why, and who its neighbors are.
const neighborsOf = node => {
  const found = [];
  for (let at = data.first[node]; at < data.first[node + 1]; at++) {
    found.push({node: data.neighbors[at], weight: data.attention ? data.attention[at] : null});
  }
  return found;
};
const degree = node => data.degree[node];

const because = node => {
  const score = data.score[node], unknown = isUnknown(node);
  const others = neighborsOf(node).filter(each => each.node !== node);
  const high = others.filter(each => data.score[each.node] > Math.fround(state.threshold));
  const isAbove = score > Math.fround(state.threshold);
  const parts = [`Its score, ${digits(score)}, is ${isAbove ? "above" : "not above"} ` +
    `the threshold ${digits(state.threshold)}.`];
  if (data.label[node] >= 0) parts.push(`It has the label ${labelName(node)}.`);
  if (others.length) {
    let text = `${high.length} of the ${others.length} neighbors listed ` +
      `${high.length === 1 ? "is" : "are"} above it${isAbove ? " too" : ""}`;
    if (meta.hasAttention && high.length) {
      const weight = high.reduce((sum, each) => sum + each.weight, 0);
      text += `; ${percent(weight)} of its attention goes to ${high.length === 1 ? "it" : "them"}`;
    }
    parts.push(`${text}.`);
  } else parts.push("It has no neighbors: its own features alone speak.");
  const gap = Math.abs(score - state.threshold);
  if (meta.hasSpread && data.spread[node] > gap) {
    parts.push("The members differ by more than its distance from the threshold: this is not sure.");
  }
  return {unknown, text: parts.join(" ")};
};

const nodeButton = node =>
  make("button", {type: "button", class: "node", onclick: () => choose(node)}, meta.ids[node]);

const classBars = node => {
  const list = make("ul", {class: "bars", "aria-label": "Class probabilities, if it is of a known class"});
  for (let k = 0; k < width; k++) {
    const share = data.topShares[node * width + k];
    list.append(make("li", {}, make("span", {class: "name"}, meta.classes[data.topClasses[node * width + k]]),
      bar(share), make("span", {class: "number"}, percent(share))));
  }
  return list;
};

const neighborTable = node => {
  const head = ["Neighbor", "Called", "Score", ...(meta.hasAttention ? ["Attention"] : [])];
  const body = neighborsOf(node).map(each => make("tr", {},
    make("th", {scope: "row"}, each.node === node ? "itself" : nodeButton(each.node)),
    make("td", {class: "text"}, verdict(each.node)),
    make("td", {}, digits(data.score[each.node])),
    meta.hasAttention ? make("td", {class: "weight"}, bar(each.weight), percent(each.weight)) : null));
  return make("table", {}, make("caption", {}, `${whole.format(degree(node))} neighbors`),
    make("thead", {}, make("tr", {}, ...head.map((text, i) =>
      make("th", {scope: "col", class: i > 1 ? "value" : ""}, text)))),
    make("tbody", {}, ...body));
};

const details = () => {
  const panel = byId("details"), node = state.node;
  if (node < 0) {
    panel.replaceChildren(make("p", {class: "note"}, "Click a node on the map, or choose one in a table below."));
    return;
  }
  const {unknown, text} = because(node);
  const facts = [["Score", digits(data.score[node])],
    ...(meta.hasSpread ? [["Between members", `± ${digits(data.spread[node])}`]] : []),
    ["Role", ROLES[data.role[node]]],
    ...(data.group[node] >= 0 ? [["Group", String(data.group[node] + 1)]] : [])];
  panel.replaceChildren(
    make("h3", {}, meta.ids[node]),
    make("p", {class: `verdict${unknown ? " unknown" : ""}`}, verdict(node)),
    make("p", {}, text),
    make("dl", {class: "facts"}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    make("h4", {}, "If it is of a known class"),
    classBars(node),
    make("h4", {}, "Neighbors"),
    neighborTable(node));
};
