// All nodes: search, filter, sort, select, save.
const PER_PAGE = 25;
const table = {by: 4, descending: true, page: 0, nodes: []};
const collator = new Intl.Collator("en", {numeric: true});

const FILTERS = [
  ["all nodes", () => true],
  ["called unknown", isUnknown],
  ["called known, unlabeled", node => data.label[node] < 0 && !isUnknown(node)],
  ["labeled", node => data.label[node] >= 0],
  ["selected", node => state.selected[node] === 1],
  ...meta.groups.map((_, number) => [`group ${number + 1}`, node => data.group[node] === number]),
];

const KEYS = [node => meta.ids[node], node => ROLES[data.role[node]], labelName, verdict,
  node => data.score[node], node => data.spread[node], node => data.group[node]];
const compare = (a, b) => typeof a === "number" ? a - b : collator.compare(a, b);

const find = () => {
  const wanted = byId("search").value.trim().toLowerCase();
  const passes = FILTERS[byId("filter").selectedIndex][1];
  const found = [];
  for (let node = 0; node < count; node++) {
    if (passes(node) && (!wanted || meta.ids[node].toLowerCase().includes(wanted))) found.push(node);
  }
  const key = KEYS[table.by], sign = table.descending ? -1 : 1;
  const keys = new Array(count);
  for (const node of found) keys[node] = key(node);
  found.sort((a, b) => sign * compare(keys[a], keys[b]) || a - b);
  Object.assign(table, {nodes: found, page: 0});
  showPage();
};

const line = node => {
  const [, role, label, called, score, spread, group] = row(node);
  const mark = make("input", {type: "checkbox", "aria-label": `Select ${meta.ids[node]}`,
    onchange: () => select([node], mark.checked ? 1 : 0)});
  mark.checked = state.selected[node] === 1;
  return make("tr", {class: isUnknown(node) ? "unknown" : ""}, make("td", {}, mark),
    make("th", {scope: "row"}, nodeButton(node)), make("td", {class: "text"}, role),
    make("td", {class: "text"}, label), make("td", {class: "text called"}, called),
    make("td", {}, digits(score)), make("td", {}, digits(spread)), make("td", {}, String(group)));
};

const heading = (name, column) => {
  const sorted = table.by === column;
  const order = table.descending ? "descending" : "ascending";
  return make("th", {scope: "col", class: column > 3 ? "value" : "", "aria-sort": sorted ? order : "none"},
    make("button", {type: "button", class: "sort", "data-column": name, onclick: () => {
      table.descending = sorted ? !table.descending : column > 3;
      table.by = column;
      find();
      byId("node-table").querySelector(`[data-column=${name}]`).focus();
    }}, name, make("span", {"aria-hidden": "true"}, sorted ? (table.descending ? " ▾" : " ▴") : "")));
};

const showPage = () => {
  const pages = Math.max(1, Math.ceil(table.nodes.length / PER_PAGE));
  const begin = table.page * PER_PAGE;
  byId("node-table").replaceChildren(
    make("thead", {}, make("tr", {}, make("th", {scope: "col"}, make("span", {class: "spoken"}, "selected")),
      ...COLUMNS.map(heading))),
    make("tbody", {}, ...table.nodes.slice(begin, begin + PER_PAGE).map(line)));
  byId("page").textContent = `Page ${whole.format(table.page + 1)} of ${whole.format(pages)}`;
  byId("previous").disabled = table.page === 0;
  byId("next").disabled = table.page + 1 >= pages;
  told();
};
const told = () => {
  const selected = selectedNodes().length;
  byId("found").textContent = `${whole.format(table.nodes.length)} nodes found, ${whole.format(selected)} selected.`;
  byId("export").disabled = !selected;
};

const nodeTable = () => {
  byId("filter").append(...FILTERS.map(([name]) => make("option", {}, name)));
  byId("search").addEventListener("input", find);
  byId("search").addEventListener("keydown", event => {
    if (event.key === "Enter" && table.nodes.length) choose(table.nodes[0]);
  });
  byId("filter").addEventListener("change", find);
  byId("select-all").addEventListener("click", () => select(table.nodes));
  byId("select-none").addEventListener("click", () => { state.selected.fill(0); tell("selection"); });
  byId("export").addEventListener("click", () => save("nodes.csv", [COLUMNS, ...selectedNodes().map(row)]));
  byId("previous").addEventListener("click", () => { table.page--; showPage(); });
  byId("next").addEventListener("click", () => { table.page++; showPage(); });
  on("selection", () => {
    byId("node-table").querySelectorAll("input").forEach((mark, at) => {
      mark.checked = state.selected[table.nodes[table.page * PER_PAGE + at]] === 1;
    });
    told();
  });
  let waiting = 0;  // sorting many nodes takes longer than dragging may
  on("threshold", () => { clearTimeout(waiting); waiting = setTimeout(find, 200); });
};
