// What held-out nodes allow to say; the same numbers as oodgat_jax.estimator.bounds.

// How many of ascending scores are above a threshold.
const above = (scores, threshold) => {
  let low = 0, high = scores.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (scores[middle] > threshold) high = middle; else low = middle + 1;
  }
  return scores.length - low;
};

// Logarithms of factorials, made when they are needed.
const factorials = [0, 0];
const logFactorial = n => {
  for (let i = factorials.length; i <= n; i++) factorials.push(factorials[i - 1] + Math.log(i));
  return factorials[n];
};
const logChoose = (n, k) => logFactorial(n) - logFactorial(k) - logFactorial(n - k);

// P(X <= x) for X the marked ones among `drawn` of `total`, of whom `marked` are marked.
const hypergeometric = (x, total, marked, drawn) => {
  const all = logChoose(total, drawn);
  let sum = 0;
  for (let k = Math.max(0, drawn - (total - marked)); k <= Math.min(x, marked, drawn); k++) {
    sum += Math.exp(logChoose(marked, k) + logChoose(total - marked, drawn - k) - all);
  }
  return sum;
};

// The least number of unknown nodes among the unlabeled ones that is not rejected.
const leastUnknown = (called, unlabeled, lost, calibration, confidence) => {
  const rejected = unknown => hypergeometric(lost, calibration + unlabeled - unknown,
    lost + called - unknown, calibration) < 1 - confidence;
  let low = 0, high = called;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rejected(middle)) low = middle + 1; else high = middle;
  }
  return low;
};

// All that stands beside the threshold; numpy compares scores as float32.
const measure = threshold => {
  const at = Math.fround(threshold), unlabeled = data.unlabeledScores.length;
  const called = above(data.unlabeledScores, at);
  const found = {called, unlabeled};
  if (!data.calibrationScores) return found;
  const calibration = data.calibrationScores.length;
  const own = at === Math.fround(meta.threshold);
  const lost = own ? meta.lost : above(data.calibrationScores, at);
  const least = leastUnknown(called, unlabeled, lost, calibration, meta.confidence);
  const [low, high] = data.intervals.subarray(2 * lost, 2 * lost + 2);
  return {...found, calibration, lost, low, high, least};
};
