// The worker. It takes {ledger, constants} once and then {id, sigma, level}, and answers with estimates; the last is final.
"use strict";

let workerLedger = null, wanted = 0;

async function answer(id, sigma, level, post) {
  let last = null, sent = null;
  const began = Date.now();
  const send = (estimate, final) => {
    const { values, stderr, exact, method, worst, effective } = estimate;
    const wide = halfWidths(estimate, 1 - (1 - level) / workerLedger.price);
    const half = wide.map((each, i) => (stderr[i] === 0 ? 0 : each)); // rounding alone is not shown
    post({ id, sigma, final, values, stderr, half, exact, method, worst,
      effective: worst < 0 ? null : effective[worst], ms: Date.now() - began });
  };
  try {
    for (const estimate of estimateSteps(workerLedger, sigma)) {
      if (estimate) last = estimate;
      if (last && last !== sent) { send(last, false); sent = last; }
      await new Promise((done) => setTimeout(done, 0)); // a newer request may be waiting
      if (id !== wanted) return;
    }
    send(last, true);
  } catch (error) {
    post({ id, sigma, error: error.message });
  }
}

function receive(message, post) {
  if (message.ledger) {
    useConstants(message.constants);
    workerLedger = unpackLedger(message.ledger);
  } else {
    wanted = message.id;
    answer(message.id, message.sigma, message.level, post);
  }
}

if (typeof WorkerGlobalScope !== "undefined" && self instanceof WorkerGlobalScope) {
  self.onmessage = (event) => receive(event.data, (answered) => self.postMessage(answered));
}
