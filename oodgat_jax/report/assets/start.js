// Builds the page, then shows the model's own threshold.
byId("notes").append(...meta.notes.map(text => make("li", {}, text)),
  make("li", {}, "Everything is in this file; it asks for nothing from elsewhere."));
byId("facts").append(...meta.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
histogram();
thresholdControls();
map();
groups();
review();
nodeTable();
on("threshold", details);
on("node", () => {
  details();
  if (state.node >= 0 && document.activeElement && document.activeElement.matches("button.node")) {
    byId("details").scrollIntoView({block: "nearest"});
  }
});
find();
tell("threshold");
document.documentElement.dataset.ready = "yes";
