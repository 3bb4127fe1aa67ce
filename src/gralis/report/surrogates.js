// Cheap models of the gradient whose values under the law are known exactly; fitted without one fold at a time.
//
//   Drift      gradient_i = sum_b beta_ib B_b(s, |T| / n)             each feature separately
//   Potential  gradient   = d/dz of a polynomial G(z) at z = s 1_T    all features share one G
"use strict";

// Solve a small system in place by elimination with pivoting; a is size x size, row by row.
function solveSmall(a, b, size) {
  for (let k = 0; k < size; k++) {
    let pivot = k;
    for (let r = k + 1; r < size; r++) if (Math.abs(a[r * size + k]) > Math.abs(a[pivot * size + k])) pivot = r;
    if (pivot !== k) {
      for (let c = 0; c < size; c++) [a[k * size + c], a[pivot * size + c]] = [a[pivot * size + c], a[k * size + c]];
      [b[k], b[pivot]] = [b[pivot], b[k]];
    }
    for (let r = k + 1; r < size; r++) {
      const factor = a[r * size + k] / a[k * size + k];
      if (factor === 0) continue;
      for (let c = k; c < size; c++) a[r * size + c] -= factor * a[k * size + c];
      b[r] -= factor * b[k];
    }
  }
  for (let k = size - 1; k >= 0; k--) {
    for (let c = k + 1; c < size; c++) b[k] -= a[k * size + c] * b[c];
    b[k] /= a[k * size + k];
  }
  return b;
}

// The Cholesky factor in place, with the lower triangle of a stored row by row; false if a is not positive definite.
// Block by block: the columns of a block are finished, then taken off all that follow, four rows by two at a time.
function factorise(a, size) {
  const width = 48, panel = new Float64Array(size * width);
  for (let from = 0; from < size; from += width) {
    const to = Math.min(from + width, size), k = to - from;
    for (let i = from; i < size; i++) {
      const row = i * size, last = Math.min(i, to - 1);
      for (let j = from; j <= last; j++) {
        const other = j * size;
        let sum = a[row + j];
        for (let c = from; c < j; c++) sum -= a[row + c] * a[other + c];
        if (j < i) a[row + j] = sum / a[other + j];
        else if (sum > 0) a[row + j] = Math.sqrt(sum);
        else return false;
      }
    }
    for (let i = to; i < size; i++) for (let c = 0; c < k; c++) panel[(i - to) * k + c] = a[i * size + from + c];
    const rest = size - to;
    for (let i = 0; i < rest; i += 4) {
      const rows = Math.min(4, rest - i), p0 = i * k, p1 = p0 + (rows > 1 ? k : 0);
      const p2 = p0 + (rows > 2 ? 2 * k : 0), p3 = p0 + (rows > 3 ? 3 * k : 0);
      for (let j = 0; j < i + rows; j += 2) {
        const q0 = j * k, q1 = j + 1 < rest ? q0 + k : q0;
        let a0 = 0, a1 = 0, b0 = 0, b1 = 0, c0 = 0, c1 = 0, d0 = 0, d1 = 0;
        for (let c = 0; c < k; c++) {
          const x = panel[q0 + c], y = panel[q1 + c];
          const u = panel[p0 + c], v = panel[p1 + c], w = panel[p2 + c], z = panel[p3 + c];
          a0 += u * x; a1 += u * y; b0 += v * x; b1 += v * y;
          c0 += w * x; c1 += w * y; d0 += z * x; d1 += z * y;
        }
        const at = (to + i) * size + to + j, two = j + 1 < rest;
        a[at] -= a0; // above the diagonal nothing is ever read
        if (two) a[at + 1] -= a1;
        if (rows > 1) { a[at + size] -= b0; if (two) a[at + size + 1] -= b1; }
        if (rows > 2) { a[at + 2 * size] -= c0; if (two) a[at + 2 * size + 1] -= c1; }
        if (rows > 3) { a[at + 3 * size] -= d0; if (two) a[at + 3 * size + 1] -= d1; }
      }
    }
  }
  return true;
}

// Solve a positive definite system in place; false if the matrix is not positive definite.
function solvePositive(a, b, size) {
  if (!factorise(a, size)) return false;
  for (let i = 0; i < size; i++) {
    let sum = b[i];
    for (let k = 0; k < i; k++) sum -= a[i * size + k] * b[k];
    b[i] = sum / a[i * size + i];
  }
  for (let i = size - 1; i >= 0; i--) {
    b[i] /= a[i * size + i];
    for (let k = 0; k < i; k++) b[k] -= a[i * size + k] * b[i];
  }
  return true;
}

class Drift {
  constructor(lesson, terms) {
    this.lesson = lesson;
    this.k = terms;
    const { ledger } = lesson, { nPoints, nRays, n } = ledger;
    this.terms = new Float64Array(nPoints * terms);
    for (let p = 0; p < nPoints; p++) {
      const s = 2 * ledger.place[p] - 1, at = ledger.sizes[ledger.ray[p]] / n - 0.5;
      const all = [1, at, s, at * s, s * s - 1 / 3, at * at, s * s * s - 0.6 * s];
      for (let a = 0; a < terms; a++) this.terms[p * terms + a] = all[a];
    }
    this.integrals = new Float64Array(nRays * terms);
    for (let r = 0; r < nRays; r++) {
      const tau = ledger.sizes[r] / n - 0.5, all = [1, tau, 0, 0, 0, tau * tau, 0];
      for (let a = 0; a < terms; a++) this.integrals[r * terms + a] = all[a];
    }
    this.moments = Array.from({ length: terms }, () => new Float64Array(n));
    lesson.laws.forEach((law, number) => {
      const share = lesson.baselineWeights[number], [one, first, second] = law.sizeMoments();
      for (let i = 0; i < n; i++) {
        const all = [one[i], first[i] - one[i] / 2, 0, 0, 0, second[i] - first[i] + one[i] / 4, 0];
        for (let a = 0; a < terms; a++) this.moments[a][i] += share * all[a];
      }
    });
  }

  get nParameters() { return this.k * this.lesson.active.length; }

  *leaveOut(folds, nFolds) {
    for (let fold = 0; fold < nFolds; fold++) yield this.fit(folds, fold);
  }

  fit(folds, fold) {
    const { lesson, k, terms } = this, { ledger, trust, slope } = lesson, { n, nPoints, nRays } = ledger;
    const normal = Array.from({ length: n }, () => new Float64Array(k * k));
    const right = Array.from({ length: n }, () => new Float64Array(k));
    for (let p = 0; p < nPoints; p++) {
      if (folds[ledger.ray[p]] === fold) continue;
      for (let i = 0; i < n; i++) {
        const w = trust[p * n + i];
        if (w === 0) continue;
        const into = normal[i], y = right[i], slopeHere = slope[p * n + i];
        for (let a = 0; a < k; a++) {
          const weighted = w * terms[p * k + a];
          y[a] += weighted * slopeHere;
          for (let b = 0; b < k; b++) into[a * k + b] += weighted * terms[p * k + b];
        }
      }
    }
    const phi = new Float64Array(n), value = new Float64Array(nRays), predicted = new Float64Array(nPoints * n);
    const ridge = constant("drift_ridge"), tiny = constant("tiny");
    for (let i = 0; i < n; i++) {
      const scale = normal[i][0] / Math.max(k, 1);
      for (let a = 0; a < k; a++) normal[i][a * k + a] += (a ? ridge * scale : 0) + tiny;
      const beta = solveSmall(normal[i], right[i], k);
      for (let a = 0; a < k; a++) phi[i] += this.moments[a][i] * beta[a];
      for (let p = 0; p < nPoints; p++) {
        let sum = 0;
        for (let a = 0; a < k; a++) sum += terms[p * k + a] * beta[a];
        predicted[p * n + i] = sum;
      }
      for (let r = 0; r < nRays; r++) {
        if (!ledger.masks[r * n + i]) continue;
        for (let a = 0; a < k; a++) value[r] += this.integrals[r * k + a] * beta[a];
      }
    }
    return { slope: predicted, value, phi };
  }
}

// All sets of `order` members of `from`, in order.
function combinations(from, order) {
  if (order === 0) return [[]];
  const sets = [];
  from.forEach((first, place) => {
    for (const rest of combinations(from.slice(place + 1), order - 1)) sets.push([first, ...rest]);
  });
  return sets;
}

// All exponents >= 1 of `order` features with a sum of at most `most`.
function powersOf(order, most) {
  if (order === 0) return [[]];
  const powers = [];
  for (let first = 1; first <= most - order + 1; first++) {
    for (const rest of powersOf(order - 1, most - first)) powers.push([first, ...rest]);
  }
  return powers;
}

function choose(n, k) {
  let count = 1;
  for (let i = 0; i < k; i++) count = count * (n - i) / (i + 1);
  return n < k ? 0 : Math.round(count);
}

// How many monomials these degrees make.
function countMonomials(active, degrees) {
  return degrees.reduce((sum, most, at) => sum + choose(active, at + 1) * choose(most, at + 1), 0);
}

class Potential {
  constructor(lesson, degrees) {
    this.lesson = lesson;
    this.supports = []; // sets of features; monomials of one support differ in their powers only
    this.of = []; // monomial -> support
    this.powers = [];
    degrees.forEach((most, at) => {
      const powers = powersOf(at + 1, most);
      for (const members of combinations(lesson.active, at + 1)) {
        for (const power of powers) { this.of.push(this.supports.length); this.powers.push(power); }
        this.supports.push(members);
      }
    });
    this.degree = Int32Array.from(this.powers, (power) => power.reduce((a, b) => a + b, 0));
    this.size = this.of.length;
    this.top = Math.max(...this.degree);
    const { ledger } = lesson, { n, nRays } = ledger;
    this.inside = []; // ray -> the supports that lie in T
    for (let r = 0; r < nRays; r++) {
      const contained = [];
      this.supports.forEach((members, s) => { if (members.every((j) => ledger.masks[r * n + j])) contained.push(s); });
      this.inside.push(contained);
    }
    this.scale = new Float64Array(this.top).fill(1);
    this.columns = this.supports.map(() => []);
    this.of.forEach((s, m) => this.columns[s].push(m));
    this.listColumns();
    this.exponentsOf = Array.from({ length: n }, () => new Float64Array(this.size)); // exponent of feature i
    this.of.forEach((s, m) => this.supports[s].forEach((j, at) => { this.exponentsOf[j][m] = this.powers[m][at]; }));
    this.moments = this.supports.map((members) => members.map((i) => {
      const others = members.filter((j) => j !== i);
      return lesson.laws.reduce((sum, law, b) => sum + lesson.baselineWeights[b] * law.subsetMoment(i, others), 0);
    }));
    const trusted = Float64Array.from(lesson.trust.filter((w) => w > 0)).sort();
    const half = trusted.length >> 1; // a value counts like one typical slope
    this.level = trusted.length % 2 ? trusted[half] : (trusted[half - 1] + trusted[half]) / 2;
  }

  get nParameters() { return this.size; }

  // For every ray and member: the monomials with that feature whose supports lie in the coalition, in order.
  listColumns() {
    const { ledger } = this.lesson, { n, nRays } = ledger;
    this.lists = new Array(nRays * n).fill(null);
    for (let r = 0; r < nRays; r++) {
      if (!ledger.pointsOf[r].length) continue;
      const columns = Array.from({ length: n }, () => []);
      for (const s of this.inside[r]) for (const i of this.supports[s]) columns[i].push(...this.columns[s]);
      for (let i = 0; i < n; i++) if (ledger.masks[r * n + i]) this.lists[r * n + i] = Int32Array.from(columns[i]);
    }
  }

  // s^d for d = 0 .. top - 1 at one point.
  powersAt(p) {
    for (let d = 1; d < this.top; d++) this.scale[d] = this.scale[d - 1] * this.lesson.ledger.place[p];
    return this.scale;
  }

  // The normal equations of the rays of one fold: their slopes, and their values where known.
  equations(folds, fold) {
    const { lesson, size, degree, exponentsOf } = this, { ledger, trust, slope } = lesson, { n, nRays } = ledger;
    const normal = new Float64Array(size * size), right = new Float64Array(size);
    const nSupports = this.supports.length, { level } = this, of = Int32Array.from(this.of);
    const together = new Float64Array(nSupports * nSupports), values = new Float64Array(nSupports);
    const slopes = new Float64Array(size);
    for (let r = 0; r < nRays; r++) {
      if (folds[r] !== fold) continue;
      for (const p of ledger.pointsOf[r]) {
        const powers = this.powersAt(p);
        for (let i = 0; i < n; i++) {
          const w = trust[p * n + i];
          if (w === 0) continue;
          const columns = this.lists[r * n + i], exponents = exponentsOf[i], y = slope[p * n + i];
          for (let a = 0; a < columns.length; a++) slopes[a] = powers[degree[columns[a]] - 1] * exponents[columns[a]];
          for (let a = 0; a < columns.length; a++) {
            const row = columns[a] * size, weighted = w * slopes[a];
            right[columns[a]] += weighted * y;
            for (let b = 0; b <= a; b++) normal[row + columns[b]] += weighted * slopes[b];
          }
        }
      }
      if (!Number.isFinite(ledger.value[r])) continue;
      const inside = this.inside[r];
      for (let a = 0; a < inside.length; a++) {
        const row = inside[a] * nSupports;
        values[inside[a]] += ledger.value[r];
        for (let b = 0; b <= a; b++) together[row + inside[b]] += 1;
      }
    }
    for (let a = 0; a < size; a++) { // supports are numbered in the order of monomials, so rows stay lower
      const row = a * size, from = this.of[a] * nSupports;
      right[a] += this.level * values[this.of[a]];
      for (let b = 0; b <= a; b++) normal[row + b] += level * together[from + of[b]];
    }
    return { normal, right };
  }

  *leaveOut(folds, nFolds) {
    const parts = [];
    for (let fold = -1; fold < nFolds; fold++) parts.push(this.equations(folds, fold));
    for (let leftOut = 1; leftOut <= nFolds; leftOut++) {
      // Added up, not subtracted from the whole: one heavy ray would take all digits of the others with it.
      const normal = new Float64Array(this.size * this.size), right = new Float64Array(this.size);
      parts.forEach((part, number) => {
        if (number === leftOut) return;
        for (let at = 0; at < normal.length; at++) normal[at] += part.normal[at];
        for (let at = 0; at < right.length; at++) right[at] += part.right[at];
      });
      yield this.solve(normal, right);
    }
  }

  solve(normal, right) {
    const { lesson, size, degree, exponentsOf } = this, { ledger } = lesson, { n, nRays, nPoints } = ledger;
    const scale = new Float64Array(size), ridge = constant("monomial_ridge"), jitter = constant("jitter");
    for (let a = 0; a < size; a++) scale[a] = Math.sqrt(normal[a * size + a]) || 0;
    for (let a = 0; a < size; a++) {
      const divisor = scale[a] > 0 ? scale[a] : 1;
      for (let b = 0; b <= a; b++) normal[a * size + b] /= divisor * (scale[b] > 0 ? scale[b] : 1);
      // Linear terms have no ridge, and a monomial without weight stays at zero.
      normal[a * size + a] += ridge * (degree[a] * degree[a] - 1) + (scale[a] > 0 ? jitter : 1);
      right[a] /= divisor;
    }
    if (!solvePositive(normal, right, size)) throw new Error("the fit is not positive definite");
    const beta = right.map((b, a) => b / (scale[a] > 0 ? scale[a] : 1));
    const bySupport = new Float64Array(this.supports.length);
    this.of.forEach((s, m) => { bySupport[s] += beta[m]; });
    const predicted = new Float64Array(nPoints * n), value = new Float64Array(nRays), phi = new Float64Array(n);
    for (let r = 0; r < nRays; r++) {
      for (const s of this.inside[r]) value[r] += bySupport[s];
      for (const p of ledger.pointsOf[r]) {
        const powers = this.powersAt(p);
        for (let i = 0; i < n; i++) {
          if (!ledger.masks[r * n + i]) continue;
          const columns = this.lists[r * n + i], exponents = exponentsOf[i];
          let sum = 0;
          for (let a = 0; a < columns.length; a++) sum += powers[degree[columns[a]] - 1] * exponents[columns[a]] * beta[columns[a]];
          predicted[p * n + i] = sum;
        }
      }
    }
    this.of.forEach((s, m) => this.supports[s].forEach((i, at) => {
      phi[i] += this.moments[s][at] * this.powers[m][at] / degree[m] * beta[m];
    }));
    return { slope: predicted, value, phi };
  }
}
