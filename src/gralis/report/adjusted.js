// The estimate of the shared plan: a surrogate, what it leaves over on the rays of the other folds, and the checksum.
"use strict";

function isExactSingle(ledger, r) { return ledger.sizes[r] === 1 && Number.isFinite(ledger.value[r]); }

// The shared plan: surrogate + cross-fitted remainder, checksum removed; one estimate after each surrogate.
function* adjusted(ledger, laws) {
  const { n, nPoints } = ledger;
  const weights = importance(ledger, laws);
  const rays = Float64Array.from(ledger.rays);
  for (let r = 0; r < ledger.nRays; r++) {
    if (isExactSingle(ledger, r)) for (let i = 0; i < n; i++) rays[r * n + i] = ledger.masks[r * n + i] * ledger.value[r];
  }
  const nFolds = foldsOf(ledger.nReplicates);
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
  const widening = constant("widening"), search = new Steadiest();
  let best = null;
  for (const [name, make] of candidates) {
    const surrogate = make(), known = new Float64Array(ledger.nReplicates * n), parts = new Float64Array(rays.length);
    let fold = 0;
    for (const guess of surrogate.leaveOut(folds, nFolds)) {
      crossFit(ledger, rays, weights, guess, folds, fold++, known, parts);
      yield best; // a good moment to look up
    }
    const factor = Math.sqrt(1 + widening * surrogate.nParameters / Math.max(nEquations, 1));
    search.lookAt(meanOf(ledger, known, parts, `adjusted rays (${name})`), factor);
    best = search.estimate();
    yield best;
    if (search.over) break;
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
