// Of several estimates from the same replicates, the one whose replicates agree best. An estimate that is chosen because
// its own replicates agree is biased, so each fold of the replicates uses what the other folds choose.
"use strict";

function foldsOf(count) { return Math.min(constant("most_folds"), count); }

class Steadiest {
  constructor() {
    this.tried = []; // {estimate, factor}: the departures have to be widened by the factor
    this.failures = 0;
    this.last = { key: null, estimate: null };
  }

  get over() { return this.failures === constant("patience"); }

  lookAt(estimate, factor) {
    const everyone = () => true, before = this.tried.length ? this.choice(everyone) : -1;
    this.tried.push({ estimate, factor });
    this.failures = this.choice(everyone) === before ? this.failures + 1 : 0;
  }

  // The place of the estimate that the replicates of `chosen` would choose; a single one has no spread, so all choose.
  choice(chosen) {
    const { count } = this.tried[0].estimate, all = Array.from({ length: count }, (_, k) => k);
    const others = all.filter(chosen), rows = others.length > 1 ? others : all;
    let best = 0, least = Infinity;
    this.tried.forEach(({ estimate, factor }, place) => {
      const { departures, values: { length: n } } = estimate;
      let squares = 0;
      for (let i = 0; i < n; i++) {
        let mean = 0;
        for (const k of rows) mean += departures[k * n + i] / rows.length;
        for (const k of rows) squares += (departures[k * n + i] - mean) ** 2;
      }
      const spread = factor ** 2 * squares;
      if (place === 0 || spread < constant("clearly") * least) [best, least] = [place, spread];
    });
    return best;
  }

  // The estimate in which each fold uses what the other folds choose; the same object while the choice stays the same.
  estimate() {
    const { count, values: { length: n } } = this.tried[0].estimate, nFolds = foldsOf(count);
    const chosen = Array.from({ length: nFolds }, (_, fold) => this.choice((k) => k % nFolds !== fold));
    const key = chosen.join();
    if (key === this.last.key) return this.last.estimate;
    const used = [...new Set(chosen)].sort((a, b) => a - b), often = (place) => chosen.filter((each) => each === place).length;
    const most = used.reduce((a, b) => (often(b) > often(a) ? b : a));
    const mixed = new Float64Array(count * n), values = new Float64Array(n), carriers = new Float64Array(n).fill(Infinity);
    const factor = Math.max(...used.map((place) => this.tried[place].factor));
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < count; k++) {
        const { estimate } = this.tried[chosen[k % nFolds]];
        mixed[k * n + i] = estimate.values[i] + estimate.departures[k * n + i];
        values[i] += mixed[k * n + i] / count;
      }
      for (let k = 0; k < count; k++) mixed[k * n + i] = (mixed[k * n + i] - values[i]) * factor;
      for (const place of used) carriers[i] = Math.min(carriers[i], this.tried[place].estimate.carriers[i]);
    }
    const { method, exact } = this.tried[most].estimate;
    this.last = { key, estimate: { values, departures: mixed, carriers, method, exact, count } };
    return this.last.estimate;
  }
}
