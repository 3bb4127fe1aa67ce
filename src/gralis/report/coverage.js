// Whether the rays of a ledger tell the values of a kernel: features without rays, and values that rest on few rays.
"use strict";

// Features that lie on no sampled ray although their law has weight outside the census: their error is unknown.
// `known` is the share of each feature's law that lies on the census.
function unvisited(ledger, weights) {
  const { n } = ledger, never = new Array(n).fill(true), known = new Float64Array(n), census = constant("census");
  for (let r = 0; r < ledger.nRays; r++) {
    for (let i = 0; i < n; i++) {
      if (ledger.replicate[r] >= 0 && ledger.masks[r * n + i]) never[i] = false;
      if (ledger.replicate[r] === census) known[i] += weights[r * n + i];
    }
  }
  const whole = 1 - constant("negligible_share");
  return { never: never.map((each, i) => each && known[i] < whole), known };
}

// How many equally weighted rays each value is worth, and the feature with too few of them (-1 if all have enough).
function coverage(ledger, laws, weights, known) {
  const { n } = ledger, sum = new Float64Array(n), squares = new Float64Array(n), serving = new Float64Array(n);
  for (let r = 0; r < ledger.nRays; r++) {
    if (ledger.formula !== "ratio" && ledger.replicate[r] < 0) continue;
    for (let i = 0; i < n; i++) {
      let w = weights[r * n + i];
      if (ledger.formula === "ratio") {
        w = 0;
        if (ledger.owner[r] === i) {
          w = kernelWeight(ledger, laws[ledger.baseline[r]], r, i);
          serving[i]++;
        }
      } else serving[i] += ledger.masks[r * n + i];
      sum[i] += w;
      squares[i] += w * w;
    }
  }
  const effective = sum.map((s, i) => (squares[i] > 0 ? s * s / squares[i] : 0));
  const few = constant("few_rays"), little = constant("little"), enoughKnown = 1 - constant("nearly_all");
  let worst = -1;
  for (let i = 0; i < n; i++) {
    const enough = ledger.enumerated || (ledger.formula === "adjusted" && known[i] > enoughKnown);
    if (!enough && effective[i] < little * serving[i] && effective[i] < few) {
      if (worst < 0 || effective[i] < effective[worst]) worst = i;
    }
  }
  return { effective, worst };
}
