// What no replicate can show: the error of fixed nodes, what random nodes and drawn coalitions missed, and rounding.
"use strict";

// The weight of every ray in each value: value_i = sum over rays of share_i ray_i; (n_rays, n).
function shares(ledger, laws, weights) {
  const { n, nRays } = ledger, share = new Float64Array(nRays * n);
  if (ledger.formula !== "ratio") {
    for (let at = 0; at < share.length; at++) {
      share[at] = ledger.replicate[Math.floor(at / n)] >= 0 ? weights[at] / Math.max(ledger.nReplicates, 1) : 0;
    }
    return share;
  }
  const total = laws.map(() => new Float64Array(n));
  for (let r = 0; r < nRays; r++) {
    const i = ledger.owner[r], number = ledger.baseline[r];
    if (i < 0 || ledger.replicate[r] < 0) continue;
    share[r * n + i] = kernelWeight(ledger, laws[number], r, i);
    total[number][i] += share[r * n + i];
  }
  for (let at = 0; at < share.length; at++) {
    const number = ledger.baseline[Math.floor(at / n)];
    share[at] *= ledger.baselineWeights[number] / (total[number][at % n] || 1);
  }
  return share;
}

// A bound on the error that all replicates share, for every feature.
function margins(ledger, laws, weights, known) {
  const { n } = ledger, margin = new Float64Array(n), share = shares(ledger, laws, weights);
  if (ledger.node_error) {
    for (let at = 0; at < share.length; at++) if (share[at] > 0) margin[at % n] += share[at] * ledger.node_error[at];
  }
  if (ledger.checksum) { // its mean is zero unless random nodes miss a part of F
    const sum = new Float64Array(n), squares = new Float64Array(n);
    for (let at = 0; at < share.length; at++) {
      const part = share[at] * ledger.checksum[Math.floor(at / n)];
      sum[at % n] += part;
      squares[at % n] += part * part;
    }
    const clear = constant("clear");
    const least = constant("n_roundings") * ledger.rounding;
    for (let i = 0; i < n; i++) {
      const missed = Math.abs(sum[i]);
      if (missed > clear * Math.sqrt(squares[i]) && missed > least) margin[i] += missed;
    }
  }
  if (ledger.fullGap) { // the coalition of all features may hardly have been drawn
    const everyone = new Uint8Array(n).fill(1), log = new Float64Array(n);
    laws.forEach((law, number) => {
      law.logConditional(everyone, log);
      const gap = ledger.baselineWeights[number] * ledger.fullGap[number];
      for (let i = 0; i < n; i++) margin[i] += gap * Math.exp(log[i]);
    });
  }
  // A feature that acts alone and on no sampled ray may act on a few more coalitions.
  if (ledger.aloneGap) for (let i = 0; i < n; i++) margin[i] += (1 - known[i]) * ledger.aloneGap[i];
  return margin;
}

// The estimate with its margin, with rounding, and with its standard errors; exact values stay exact up to rounding.
function completed(ledger, estimate, margin, moving) {
  const { values } = estimate, n = values.length, largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  const within = constant("at_rounding") * largest + constant("n_roundings") * ledger.rounding;
  const exact = estimate.exact && margin.every((each) => each <= within);
  const agree = estimate.exact && !exact; // values without sampling error have two replicates that agree
  const departures = agree ? new Float64Array(2 * n) : estimate.departures, count = agree ? 2 : estimate.count;
  const samplingError = new Float64Array(n), stderr = new Float64Array(n), allowance = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let squares = 0;
    for (let k = 0; k < count; k++) squares += departures[k * n + i] ** 2;
    samplingError[i] = exact ? 0 : count < 2 ? NaN : Math.sqrt(squares / (count * (count - 1)));
    stderr[i] = exact ? 0 : Math.hypot(samplingError[i], margin[i]);
    allowance[i] = margin[i] + (moving[i] ? ledger.rounding : 0);
  }
  return { ...estimate, exact, departures, count, samplingError, stderr, allowance };
}
