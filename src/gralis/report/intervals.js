// Simultaneous intervals: values +- (c sampling error + margin + rounding), c from the quantile of max |t|.
"use strict";

const LANCZOS = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
  -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];

function logGamma(x) {
  if (x < 0.5) return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * x))) - logGamma(1 - x);
  let sum = 0.99999999999980993;
  for (let k = 0; k < 8; k++) sum += LANCZOS[k] / (x + k);
  const t = x + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

// The regularised incomplete beta function by its continued fraction.
function incompleteBeta(a, b, x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(b, a, 1 - x);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  let c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), product = d;
  for (let m = 1; m < 500; m++) {
    let step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / (1 + step * d);
    c = 1 + step / c;
    product *= c * d;
    step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / (1 + step * d);
    c = 1 + step / c;
    product *= c * d;
    if (Math.abs(c * d - 1) < 1e-15) break;
  }
  return front * product;
}

// P(t > at) of Student's t, at >= 0.
function studentTail(at, dof) { return 0.5 * incompleteBeta(dof / 2, 0.5, dof / (dof + at * at)); }

// The number that Student's t exceeds with this probability, tail <= 1/2; by bisection on the logarithm.
function studentQuantile(tail, dof) {
  let low = 0, high = 1;
  while (studentTail(high, dof) > tail) high *= 2;
  for (let step = 0; step < 200; step++) {
    const middle = (low + high) / 2;
    if (studentTail(middle, dof) > tail) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

// Normal numbers from a fixed seed: the quantile is a number of the design, the same for the same replicates.
function normals(seed) {
  let state = seed >>> 0, spare = null;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return () => {
    if (spare !== null) { const number = spare; spare = null; return number; }
    const radius = Math.sqrt(-2 * Math.log(1 - uniform())), angle = 2 * Math.PI * uniform();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}

// A root R of the correlation, R'R = scores' scores: the scores, or the triangle of their QR factors if it is smaller.
function rootOf(scores, count, m) {
  if (count <= m) return scores;
  const columns = Float64Array.from(scores), root = new Float64Array(m * m);
  for (let a = 0; a < m; a++) {
    let squares = 0;
    for (let k = 0; k < count; k++) squares += columns[k * m + a] ** 2;
    if (squares < 1e-20) continue; // this column depends on those before, and had length 1
    const length = Math.sqrt(squares);
    root[a * m + a] = length;
    for (let b = a + 1; b < m; b++) {
      let product = 0;
      for (let k = 0; k < count; k++) product += columns[k * m + a] * columns[k * m + b] / length;
      root[a * m + b] = product;
      for (let k = 0; k < count; k++) columns[k * m + b] -= product * columns[k * m + a] / length;
    }
  }
  return root;
}

// The `level` quantile of max |t_i| for replicates with the shrunk correlation of `departures`, at most Bonferroni's.
function critical(departures, count, n, level) {
  const ceiling = studentQuantile((1 - level) / 2 / n, count - 1), nDraws = constant("n_draws");
  const moving = [], nDrawn = Math.min(count, constant("most_replicates"));
  let known = true;
  for (let i = 0; i < n; i++) {
    let squares = 0;
    for (let k = 0; k < count; k++) squares += departures[k * n + i] ** 2;
    if (squares > 0) moving.push([i, Math.sqrt(squares)]);
    if (Number.isNaN(squares)) known = false;
  }
  const m = moving.length;
  // Two replicates show every correlation as 1 or -1, so nothing can be learnt from them.
  if (!known || m < 2 || count < 3 || nDraws * nDrawn * m > constant("most_numbers")) return ceiling;
  const scores = new Float64Array(count * m);
  moving.forEach(([i, root], c) => { for (let k = 0; k < count; k++) scores[k * m + c] = departures[k * n + i] / root; });
  let squares = 0, variances = 0;
  for (let a = 0; a < m; a++) {
    for (let b = 0; b < m; b++) {
      if (a === b) continue;
      let r = 0;
      for (let k = 0; k < count; k++) r += scores[k * m + a] * scores[k * m + b];
      squares += r * r;
      variances += (1 - r * r) ** 2 / (count - 1);
    }
  }
  const alone = squares === 0 ? 1 : Math.min(1, variances / squares);
  const normal = normals(1), largest = new Float64Array(nDraws), root = rootOf(scores, count, m), nRoot = root.length / m;
  const sum = new Float64Array(m), square = new Float64Array(m), row = new Float64Array(m);
  for (let draw = 0; draw < nDraws; draw++) {
    sum.fill(0);
    square.fill(0);
    for (let k = 0; k < nDrawn; k++) {
      row.fill(0);
      for (let l = 0; l < nRoot; l++) {
        const z = normal();
        for (let c = 0; c < m; c++) row[c] += z * root[l * m + c];
      }
      for (let c = 0; c < m; c++) {
        const value = Math.sqrt(1 - alone) * row[c] + Math.sqrt(alone) * normal();
        sum[c] += value;
        square[c] += value * value;
      }
    }
    for (let c = 0; c < m; c++) {
      const mean = sum[c] / nDrawn, deviation = Math.sqrt((square[c] - nDrawn * mean * mean) / (nDrawn - 1));
      largest[draw] = Math.max(largest[draw], Math.abs(mean) / deviation * Math.sqrt(nDrawn));
    }
  }
  largest.sort();
  const place = level * (nDraws - 1), below = Math.floor(place);
  const quantile = largest[below] + (place - below) * (largest[Math.min(below + 1, nDraws - 1)] - largest[below]);
  return Math.min(ceiling, quantile);
}

// Half-widths that hold for all values together with probability `level`; rounding alone if exact, NaN if unknown.
function halfWidths(estimate, level) {
  const { count, samplingError, allowance, carriers, departures, exact } = estimate, n = samplingError.length;
  if (exact) return allowance;
  if (count < 2) return new Float64Array(n).fill(NaN);
  const tail = studentTail(critical(departures, count, n, level), count - 1), least = constant("least_carriers");
  return samplingError.map((error, i) => {
    const dof = 2 / (2 / (count - 1) + constant("heavy") / Math.max(carriers[i], least));
    return studentQuantile(tail, dof) * error + allowance[i];
  });
}
