// Elements and formats. Whatever comes from the data becomes text, never markup.
const byId = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null));
  return element;
};
const make = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

const whole = new Intl.NumberFormat("en-US");
const percent = share => `${(100 * share).toFixed(1)} %`;
const digits = value => value.toFixed(3);

const say = text => { byId("announcer").textContent = text; };

const bar = (share, kind = "") => {
  const inner = make("span", {class: `fill ${kind}`});
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return make("span", {class: "bar", "aria-hidden": "true"}, inner);
};

// A cell that no spreadsheet takes for a formula, led by an apostrophe.
const cell = value => {
  let text = String(value);
  const formula = /^[=+\-@\t\r]/.test(text) && !(text.trim() && isFinite(Number(text)));
  if (typeof value === "string" && formula) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csv = rows => rows.map(row => row.map(cell).join(",") + "\n").join("");
const save = (name, rows) => {
  const address = URL.createObjectURL(new Blob([csv(rows)], {type: "text/csv"}));
  const link = make("a", {href: address, download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
};
