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
let detailsWaiting = 0;  // what is read aloud waits until the line stands still
on("threshold", () => { clearTimeout(detailsWaiting); detailsWaiting = setTimeout(details, 150); });
on("node", () => {
  details();
  if (state.node >= 0 && document.activeElement && document.activeElement.matches("button.node")) {
    byId("details").scrollIntoView({block: "nearest"});
  }
});
find();
details();
tell("threshold");
document.documentElement.dataset.ready = "yes";
