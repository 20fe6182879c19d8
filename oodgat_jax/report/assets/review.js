// What to label next: a table with a field for each label.
const review = () => {
  const head = ["Node", "Called", "Score", "Reason", "Label"];
  const fields = meta.review.map(({node}) => make("input", {type: "text", autocomplete: "off",
    list: "known-classes", "aria-label": `Label of ${meta.ids[node]}`}));
  const called = meta.review.map(({node}) => make("td", {class: "text"}, verdict(node)));
  byId("review-table").append(
    make("thead", {}, make("tr", {}, ...head.map(text =>
      make("th", {scope: "col", class: text === "Score" ? "value" : ""}, text)))),
    make("tbody", {}, ...meta.review.map(({node, reason}, i) => make("tr", {},
      make("th", {scope: "row"}, nodeButton(node)), called[i],
      make("td", {}, digits(data.score[node])),
      make("td", {class: "text"}, reason), make("td", {class: "text"}, fields[i])))));
  byId("review-table").after(make("datalist", {id: "known-classes"},
    ...meta.classes.map(name => make("option", {value: name}))));
  on("threshold", () => meta.review.forEach(({node}, i) => { called[i].textContent = verdict(node); }));
  byId("save-review").addEventListener("click", () => save("review.csv", [
    ["id", "score", "predicted", "called_unknown", "reason", "label"],
    ...meta.review.map(({node, reason}, i) => [meta.ids[node], data.score[node],
      predictedName(node), isUnknown(node) ? "True" : "False", reason, fields[i].value])]));
};
