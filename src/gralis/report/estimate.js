// phi of one Gaussian kernel from the rows of a ledger: the estimators of the Python package, translated. Arithmetic only.
//
// Every function takes the unpacked ledger. `estimateSteps` yields a first, cheap estimate and then better ones. Its
// caller can look up in between, and can give up an estimate that is no longer wanted.
"use strict";

const KINDS = { "<f8": Float64Array, "<i4": Int32Array, "|u1": Uint8Array };

// A column {dtype, base64} as a typed array.
function unpackColumn(column) {
  const text = atob(column.base64), bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return new KINDS[column.dtype](bytes.buffer);
}

// The ledger of a report as typed arrays, with sizes and the points of each ray.
function unpackLedger(packed) {
  const ledger = { formula: packed.formula, method: packed.method, exact: packed.exact };
  for (const [name, column] of Object.entries(packed.columns)) ledger[name] = unpackColumn(column);
  ledger.squaredDistance = packed.squared_distance.map((row) => Float64Array.from(row));
  ledger.baselineWeights = packed.baseline_weights;
  ledger.distance = packed.distance;
  ledger.n = packed.n_features;
  ledger.nRays = packed.n_rays;
  ledger.nReplicates = ledger.replicate.reduce((a, b) => Math.max(a, b), -1) + 1;
  ledger.nPoints = ledger.ray ? ledger.ray.length : 0;
  ledger.sizes = new Int32Array(ledger.nRays);
  for (let at = 0; at < ledger.masks.length; at++) ledger.sizes[Math.floor(at / ledger.n)] += ledger.masks[at];
  ledger.pointsOf = Array.from({ length: ledger.nRays }, () => []);
  for (let p = 0; p < ledger.nPoints; p++) ledger.pointsOf[ledger.ray[p]].push(p);
  if (!ledger.rays) ledger.rays = sumPoints(ledger, (p, i) => ledger.weight[p] * ledger.gradient[p * ledger.n + i]);
  return ledger;
}

// Sum of value(p, i) over the points of each ray, zero outside T; (n_rays, n).
function sumPoints(ledger, value) {
  const { n } = ledger, total = new Float64Array(ledger.nRays * n);
  for (let p = 0; p < ledger.nPoints; p++) {
    const row = ledger.ray[p] * n;
    for (let i = 0; i < n; i++) if (ledger.masks[row + i]) total[row + i] += value(p, i);
  }
  return total;
}

// W_i(T) = q_i(T) / rate(T), zero outside T; (n_rays, n).
function importance(ledger, laws) {
  const { n } = ledger, weights = new Float64Array(ledger.nRays * n), log = new Float64Array(n);
  for (let r = 0; r < ledger.nRays; r++) {
    const number = ledger.baseline[r];
    laws[number].logConditional(ledger.masks.subarray(r * n, (r + 1) * n), log);
    for (let i = 0; i < n; i++) {
      weights[r * n + i] = ledger.baselineWeights[number] * Math.exp(log[i] - ledger.log_rate[r]);
    }
  }
  return weights;
}

// The mean over replicates of `known` plus the sum over their rays of `parts`; departures widened by `factor`.
function meanOf(ledger, known, parts, method, { exact = false, carriers = false, factor = 1 } = {}) {
  const { n, nReplicates: count } = ledger;
  const each = known ? Float64Array.from(known) : new Float64Array(count * n);
  for (let r = 0; r < ledger.nRays; r++) {
    if (ledger.replicate[r] < 0) continue;
    for (let i = 0; i < n; i++) each[ledger.replicate[r] * n + i] += parts[r * n + i];
  }
  const values = new Float64Array(n), heavy = new Float64Array(n).fill(Infinity);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < count; k++) values[i] += each[k * n + i] / count;
    for (let k = 0; k < count; k++) each[k * n + i] = (each[k * n + i] - values[i]) * factor;
    if (!carriers) continue;
    let squares = 0, fourth = 0;
    for (let r = 0; r < ledger.nRays; r++) { const s = parts[r * n + i] ** 2; squares += s; fourth += s * s; }
    if (fourth > 0) heavy[i] = squares * squares / fourth;
  }
  return { values, departures: each, carriers: heavy, method, exact, count };
}

function weighted(ledger, laws) {
  const parts = importance(ledger, laws).map((w, at) => w * ledger.rays[at]);
  return meanOf(ledger, null, parts, ledger.method, { exact: ledger.exact });
}

// Algorithm 1: sum pi(S) ray_i / sum pi(S) over the rays drawn for feature i, per baseline; then averaged.
function ratio(ledger, laws) {
  const { n, nReplicates: count } = ledger;
  const values = new Float64Array(n), departures = new Float64Array(count * n);
  laws.forEach((law, number) => {
    const top = new Float64Array(count * n), bottom = new Float64Array(count * n);
    for (let r = 0; r < ledger.nRays; r++) {
      const i = ledger.owner[r];
      if (ledger.baseline[r] !== number || i < 0 || ledger.replicate[r] < 0) continue;
      let log = 0;
      for (let j = 0; j < n; j++) if (j !== i && ledger.masks[r * n + j]) log += law.logp[j];
      const weight = Math.exp(log), at = ledger.replicate[r] * n + i;
      top[at] += weight * ledger.rays[r * n + i];
      bottom[at] += weight;
    }
    for (let i = 0; i < n; i++) {
      let above = 0, total = 0;
      for (let k = 0; k < count; k++) { above += top[k * n + i]; total += bottom[k * n + i]; }
      const divisor = total === 0 ? 1 : total, value = above / divisor, share = ledger.baselineWeights[number];
      values[i] += share * value;
      for (let k = 0; k < count; k++) {
        departures[k * n + i] += share * (top[k * n + i] - value * bottom[k * n + i]) / (divisor / count);
      }
    }
  });
  const carriers = new Float64Array(n).fill(Infinity);
  return { values, departures, carriers, method: ledger.method, exact: false, count };
}

function isExactSingle(ledger, r) { return ledger.sizes[r] === 1 && Number.isFinite(ledger.value[r]); }

// The shared plan: surrogate + cross-fitted remainder, checksum removed; one estimate after each surrogate.
function* adjusted(ledger, laws) {
  const { n, nPoints } = ledger;
  const weights = importance(ledger, laws);
  const rays = Float64Array.from(ledger.rays);
  for (let r = 0; r < ledger.nRays; r++) {
    if (isExactSingle(ledger, r)) for (let i = 0; i < n; i++) rays[r * n + i] = ledger.masks[r * n + i] * ledger.value[r];
  }
  const nFolds = Math.min(constant("most_folds"), ledger.nReplicates);
  const folds = ledger.replicate.map((number) => (number >= 0 ? number % nFolds : -1));
  const slope = new Float64Array(nPoints * n), trust = new Float64Array(nPoints * n);
  const seen = new Int32Array(n), members = new Int32Array(n);
  for (let p = 0; p < nPoints; p++) {
    for (let i = 0; i < n; i++) {
      const at = p * n + i, from = ledger.ray[p] * n + i;
      slope[at] = ledger.stretch[p] * ledger.gradient[at];
      trust[at] = weights[from];
      if (slope[at] !== 0 && trust[at] > 0) seen[i]++;
      members[i] += ledger.masks[from];
    }
  }
  const active = [];
  for (let i = 0; i < n; i++) if (seen[i]) active.push(i);
  const nEquations = seen.reduce((a, b) => a + b, 0);
  const lesson = { ledger, slope, trust, laws, baselineWeights: ledger.baselineWeights, active };

  const candidates = [["constant", () => new Drift(lesson, 1)]];
  if (members.reduce((a, b) => Math.min(a, b)) >= constant("least_visits")) {
    candidates.push(["drift", () => new Drift(lesson, constant("drift_terms"))]);
  }
  const most = Math.min(constant("most_monomials"), nEquations / constant("equations_per_monomial"));
  for (const degrees of constant("ladder")) {
    const count = countMonomials(active.length, degrees);
    if (count > 0 && count <= most) {
      candidates.push([`potential(${degrees.join(", ")})`, () => new Potential(lesson, degrees)]);
    }
  }
  const clearly = constant("clearly"), patience = constant("patience"), widening = constant("widening");
  let best = null, least = Infinity, failures = 0;
  for (const [name, make] of candidates) {
    const surrogate = make(), known = new Float64Array(ledger.nReplicates * n), parts = new Float64Array(rays.length);
    let fold = 0;
    for (const guess of surrogate.leaveOut(folds, nFolds)) {
      crossFit(ledger, rays, weights, guess, folds, fold++, known, parts);
      yield best; // a good moment to look up
    }
    const factor = Math.sqrt(1 + widening * surrogate.nParameters / Math.max(nEquations, 1));
    const estimate = meanOf(ledger, known, parts, `adjusted rays (${name})`, { carriers: true, factor });
    const spread = estimate.departures.reduce((sum, d) => sum + d * d, 0);
    if (best === null || spread < clearly * least) [best, least, failures] = [estimate, spread, 0];
    else if (++failures === patience) break;
    yield best;
  }
  yield best;
}

// What the surrogate fitted without this fold leaves over on the fold's rays, and what is known for its replicates.
function crossFit(ledger, rays, weights, guess, folds, fold, known, parts) {
  const { n } = ledger;
  const left = sumPoints(ledger, (p, i) => ledger.weight[p] / ledger.stretch[p] * guess.slope[p * n + i]);
  for (let r = 0; r < ledger.nRays; r++) {
    for (let i = 0; i < n; i++) {
      const at = r * n + i;
      left[at] = rays[at] - (isExactSingle(ledger, r) ? ledger.masks[at] * guess.value[r] : left[at]);
    }
  }
  withoutChecksum(ledger, left, guess.value, weights, folds, fold);
  const base = Float64Array.from(guess.phi), replicates = new Set(), censusMark = constant("census");
  for (let r = 0; r < ledger.nRays; r++) {
    const census = ledger.replicate[r] === censusMark;
    if (folds[r] === fold) replicates.add(ledger.replicate[r]);
    if (!census && folds[r] !== fold) continue;
    for (let i = 0; i < n; i++) {
      const part = weights[r * n + i] * left[r * n + i];
      if (census) base[i] += part;
      else parts[r * n + i] = part;
    }
  }
  for (const number of replicates) for (let i = 0; i < n; i++) known[number * n + i] = base[i];
}

// left_i -= (b_i share_i(T) + b'_i / |T|) c(T), c the checksum of what the surrogate left; b learnt outside the fold.
function withoutChecksum(ledger, left, guessed, weights, folds, fold) {
  const { n, nRays } = ledger, usable = [];
  for (let r = 0; r < nRays; r++) {
    if (Number.isFinite(ledger.value[r]) && ledger.pointsOf[r].length && ledger.sizes[r] > 1) usable.push(r);
  }
  if (!usable.length) return;
  const noise = new Float64Array(n), count = new Float64Array(n), check = new Float64Array(nRays);
  const tiny = constant("tiny"), checksumRidge = constant("checksum_ridge");
  for (const r of usable) {
    let sum = guessed[r] - ledger.value[r];
    for (let i = 0; i < n; i++) sum += left[r * n + i];
    check[r] = sum;
    if (folds[r] === fold) continue;
    for (let i = 0; i < n; i++) { noise[i] += left[r * n + i] ** 2; count[i] += ledger.masks[r * n + i]; }
  }
  for (let i = 0; i < n; i++) noise[i] = noise[i] / Math.max(count[i], 1) + tiny;
  const share = new Float64Array(n * nRays), total = (r) => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += ledger.masks[r * n + i] * noise[i];
    return sum;
  };
  for (const r of usable) {
    const sum = total(r);
    for (let i = 0; i < n; i++) share[r * n + i] = ledger.masks[r * n + i] * noise[i] / sum;
  }
  for (let i = 0; i < n; i++) {
    let a = 0, b = 0, d = 0, first = 0, second = 0;
    for (const r of usable) {
      const at = r * n + i;
      if (folds[r] === fold || !ledger.masks[at]) continue;
      const w = weights[at] ** 2, x = share[at] * check[r], y = check[r] / ledger.sizes[r];
      a += w * x * x; b += w * x * y; d += w * y * y;
      first += w * x * left[at]; second += w * y * left[at];
    }
    const ridge = checksumRidge * (a + d) + tiny;
    const [byShare, evenly] = solveSmall([a + ridge, b, b, d + ridge], [first, second], 2);
    for (const r of usable) {
      const at = r * n + i;
      if (ledger.masks[at]) left[at] -= (share[at] * byShare + evenly / ledger.sizes[r]) * check[r];
    }
  }
}

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
          for (let j = 0; j < n; j++) if (j !== i && ledger.masks[r * n + j]) w += laws[ledger.baseline[r]].logp[j];
          w = Math.exp(w);
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
    const enough = ledger.exact || (ledger.formula === "adjusted" && known[i] > enoughKnown);
    if (!enough && effective[i] < little * serving[i] && effective[i] < few) {
      if (worst < 0 || effective[i] < effective[worst]) worst = i;
    }
  }
  return { effective, worst };
}

// Estimates of phi for one sigma; the last one is the best. A step without a new estimate yields null.
function* estimateSteps(ledger, sigma) {
  const laws = ledger.squaredDistance.map((row) => new ProductLaw(logP(row, sigma, ledger.distance)));
  const weights = importance(ledger, laws), { never, known } = unvisited(ledger, weights);
  const unknown = never.map((each, i) => each && !ledger.exact && ledger.squaredDistance.some((row) => row[i] > 0));
  const { effective, worst } = coverage(ledger, laws, weights, known);
  const finish = (estimate) => {
    if (!estimate) return null;
    const { count, exact } = estimate;
    const stderr = new Float64Array(ledger.n), departures = Float64Array.from(estimate.departures);
    for (let i = 0; i < ledger.n; i++) {
      let squares = 0;
      for (let k = 0; k < count; k++) {
        if (unknown[i] && ledger.formula !== "ratio") departures[k * ledger.n + i] = NaN;
        squares += departures[k * ledger.n + i] ** 2;
      }
      stderr[i] = exact ? 0 : count < 2 ? NaN : Math.sqrt(squares / (count * (count - 1)));
    }
    return { ...estimate, departures, stderr, effective, worst, sigma };
  };
  if (ledger.formula === "adjusted") {
    let shown = null, last = null;
    for (const estimate of adjusted(ledger, laws)) {
      last = estimate === shown ? last : finish(estimate);
      yield estimate === shown ? null : last;
      shown = estimate;
    }
    yield last;
  } else if (ledger.formula === "ratio") yield finish(ratio(ledger, laws));
  else if (ledger.formula === "weighted") yield finish(weighted(ledger, laws));
  else throw new Error(`the page knows no formula ${ledger.formula}`);
}

// The last estimate for one sigma.
function estimateAt(ledger, sigma) {
  let last = null;
  for (const estimate of estimateSteps(ledger, sigma)) last = estimate || last;
  return last;
}
