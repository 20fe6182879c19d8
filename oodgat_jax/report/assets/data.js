// Unpacks what the file holds: text as JSON, numbers as typed arrays.
const read = id => JSON.parse(document.getElementById(id).textContent);
const TYPES = {Uint8: Uint8Array, Uint16: Uint16Array, Int32: Int32Array,
  Float32: Float32Array, Float64: Float64Array};

const bytes = text => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const packed = atob(text), found = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) found[i] = packed.charCodeAt(i);
  return found;
};

const meta = read("meta");
const data = {};
for (const [name, [kind, text]] of Object.entries(read("arrays"))) {
  data[name] = new TYPES[kind](bytes(text).buffer);
}
for (const id of ["meta", "arrays"]) document.getElementById(id).remove();  // memory

const count = meta.ids.length;  // nodes on the page
const width = data.topClasses.length / count;  // classes listed per node
const LEARNED = 1, HELD_OUT = 2;
const ROLES = ["unlabeled", "learned from", "held out"];
const topClass = node => data.topClasses[node * width];
const predictedName = node => meta.classes[topClass(node)];
const labelName = node => data.label[node] < 0 ? "" : meta.labelNames[data.label[node]];
