// One card for each group of unknown nodes.
const contrast = ([name, value], most) => make("li", {},
  make("span", {class: "name"}, name),
  bar(Math.abs(value) / most, value < 0 ? "low" : "high"),
  make("span", {class: "number"}, `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(1)} σ`));

const members = number => {
  const found = [];
  for (let node = 0; node < count; node++) if (data.group[node] === number) found.push(node);
  return found;
};

const card = (group, number) => {
  const most = Math.max(...group.contrasts.map(each => Math.abs(each[1])), 1e-9);
  const facts = [["Cohesion", group.cohesion.toFixed(2)],
    ["Edges inside", percent(group.edgesInside)], ["Nearest known class", group.nearest]];
  return make("article", {class: "card", "aria-labelledby": `group-${number}`},
    make("h3", {id: `group-${number}`}, `Group ${number + 1}`,
      make("span", {class: "size"}, ` ${whole.format(group.size)} nodes`)),
    make("dl", {class: "facts"}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    make("h4", {}, "What sets it apart"),
    make("ul", {class: "bars"}, ...group.contrasts.map(each => contrast(each, most))),
    make("h4", {}, "Typical nodes"),
    make("p", {class: "typical"}, ...group.typical.map(nodeButton)),
    make("p", {class: "controls"}, make("button", {type: "button", onclick: () => {
      const nodes = members(number);
      select(nodes);
      say(`${whole.format(nodes.length)} nodes selected.`);
    }}, "Select its nodes")));
};

const groups = () => {
  byId("groups-about").textContent = meta.groups.length ?
    `Nodes called unknown at the model's own threshold, ${digits(meta.threshold)}, grouped by their ` +
    `features and those around them (${meta.grouping}): candidates for new classes. Cohesion is 1 where a group is far ` +
    "from all others for its size, and near 0 where it is not. σ is a feature's standard deviation." :
    `There are no groups: ${meta.grouping}.`;
  byId("group-cards").append(...meta.groups.map(card));
};
