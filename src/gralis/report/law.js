// The law of a Gaussian kernel, pi(S) = prod over j in S of p_j; p = 1 is the uniform kernel. Arithmetic only.
//
//   Z_i = integral over u in [0, 1] of prod over j != i of (1 - u + u p_j),  T | u: j joins with odds u p_j : 1 - u
"use strict";

// Gauss-Legendre nodes and weights on [-1, 1], by Newton's method on the Legendre polynomial.
function gaussLegendre(count) {
  const nodes = new Float64Array(count), weights = new Float64Array(count);
  for (let k = 0; k < count; k++) {
    let x = Math.cos(Math.PI * (k + 0.75) / (count + 0.5)), slope = 1;
    for (let step = 0; step < 100; step++) {
      let before = 1, here = x;
      for (let degree = 2; degree <= count; degree++) {
        [before, here] = [here, ((2 * degree - 1) * x * here - (degree - 1) * before) / degree];
      }
      slope = count * (x * here - before) / (x * x - 1);
      const move = here / slope;
      x -= move;
      if (Math.abs(move) < 1e-16) break;
    }
    nodes[k] = x;
    weights[k] = 2 / ((1 - x * x) * slope * slope);
  }
  return { nodes, weights };
}

let rule = null; // the nodes on each panel
function panelRule() {
  if (rule === null) rule = gaussLegendre(constant("n_nodes"));
  return rule;
}

// log p_j = -d_j^2 / (2 sigma^2), d relative to the whole distance or as it is; sigma = Infinity: the uniform kernel.
function logP(squaredDistance, sigma, distance) {
  const n = squaredDistance.length, logs = new Float64Array(n);
  if (sigma === Infinity) return logs;
  let scale = 1;
  if (distance === "relative") {
    scale = 0;
    for (let j = 0; j < n; j++) scale += squaredDistance[j];
  }
  if (scale === 0) return logs;
  for (let j = 0; j < n; j++) logs[j] = -Math.min(squaredDistance[j] / scale / 2 / sigma / sigma, 1e300);
  return logs;
}

// log k! for k = 0 .. n.
function logFactorials(n) {
  const table = new Float64Array(n + 1);
  for (let k = 2; k <= n; k++) table[k] = table[k - 1] + Math.log(k);
  return table;
}

class ProductLaw {
  // A law works with finite logarithms, so p has a floor; the weights of Algorithm 1 have none.
  constructor(unlimited) {
    const most = constant("most_exponent"), logp = unlimited.map((value) => Math.max(value, -most));
    this.logp = logp;
    this.unlimited = unlimited;
    this.n = logp.length;
    this.gap = logp.map((value) => -Math.expm1(value));
    this.factorials = logFactorials(this.n);
    this.arrive();
  }

  // Arrival times u, and for each of them the mass of u in the conditional law of every feature.
  arrive() {
    const { n, gap } = this, { nodes, weights } = panelRule(), negligible = constant("negligible");
    let rate = 0;
    for (let j = 0; j < n; j++) rate += gap[j];
    const panels = Math.ceil(Math.log2(Math.max(rate, 1))) + 1;
    const times = [], mass = [];
    for (let panel = 0; panel <= panels; panel++) {
      const left = panel === 0 ? 0 : 0.5 ** (panels - panel + 1), right = 0.5 ** (panels - panel);
      for (let k = 0; k < nodes.length; k++) {
        const u = left + (right - left) * (nodes[k] + 1) / 2;
        let log = Math.log((right - left) * weights[k] / 2);
        for (let j = 0; j < n; j++) log += Math.log1p(-u * gap[j]);
        times.push(u);
        mass.push(log);
      }
    }
    const top = mass.reduce((a, b) => Math.max(a, b), -Infinity);
    this.times = [];
    this.featureMass = []; // per time: log of its mass for every feature, then that mass itself
    for (let t = 0; t < times.length; t++) {
      if (mass[t] <= top - negligible) continue; // below rounding
      this.times.push(times[t]);
      this.featureMass.push(gap.map((g) => mass[t] - Math.log1p(-times[t] * g)));
    }
    this.logZ = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      let highest = -Infinity, sum = 0;
      for (const row of this.featureMass) highest = Math.max(highest, row[i]);
      for (const row of this.featureMass) sum += Math.exp(row[i] - highest);
      this.logZ[i] = highest + Math.log(sum);
    }
    for (const row of this.featureMass) for (let i = 0; i < n; i++) row[i] = Math.exp(row[i] - this.logZ[i]);
    this.odds = this.times.map((u) => logpOdds(this.logp, gap, u));
  }

  // log q(T | i in T) = log B(t, n - t + 1) + log pi(T without i) - log Z_i, written to out; -Infinity outside T.
  logConditional(mask, out) {
    const { n, logp, logZ, factorials } = this;
    let size = 0, kernel = 0;
    for (let j = 0; j < n; j++) if (mask[j]) { size++; kernel += logp[j]; }
    const common = factorials[size - 1] + factorials[n - size] - factorials[n] + kernel;
    for (let j = 0; j < n; j++) out[j] = mask[j] ? common - logp[j] - logZ[j] : -Infinity;
  }

  // P(A in T | i in T).
  subsetMoment(i, others) {
    let total = 0;
    for (let t = 0; t < this.times.length; t++) {
      let product = this.featureMass[t][i];
      for (const j of others) product *= this.odds[t][j];
      total += product;
    }
    return total;
  }

  // E[(|T| / n)^k | i in T] for k = 0, 1, 2.
  sizeMoments() {
    const { n } = this;
    const moments = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
    for (let t = 0; t < this.times.length; t++) {
      const odds = this.odds[t], mass = this.featureMass[t];
      let sum = 0, spread = 0;
      for (let j = 0; j < n; j++) { sum += odds[j]; spread += odds[j] * (1 - odds[j]); }
      for (let i = 0; i < n; i++) {
        const mean = 1 + sum - odds[i], variance = spread - odds[i] * (1 - odds[i]);
        moments[0][i] += mass[i];
        moments[1][i] += mass[i] * mean / n;
        moments[2][i] += mass[i] * (mean * mean + variance) / (n * n);
      }
    }
    return moments;
  }
}

// P(j joins before u) = u p_j / (1 - u + u p_j).
function logpOdds(logp, gap, u) {
  return logp.map((value, j) => u * Math.exp(value) / (1 - u * gap[j]));
}
