// The worker: takes {ledger} once and then {id, sigma, level}; answers with estimates, the last one marked final.
"use strict";

let workerLedger = null, wanted = 0;

async function answer(id, sigma, level, post) {
  let last = null, sent = null;
  const began = Date.now();
  const send = (found, final) => {
    const half = halfWidths(found, level);
    post({ id, sigma, final, values: found.values, stderr: found.stderr, half, method: found.method,
      worst: found.worst, effective: found.worst < 0 ? null : found.effective[found.worst], ms: Date.now() - began });
  };
  try {
    for (const found of estimateSteps(workerLedger, sigma)) {
      if (found) last = found;
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
  if (message.ledger) workerLedger = unpackLedger(message.ledger);
  else {
    wanted = message.id;
    answer(message.id, message.sigma, message.level, post);
  }
}

if (typeof WorkerGlobalScope !== "undefined" && self instanceof WorkerGlobalScope) {
  self.onmessage = (event) => receive(event.data, (found) => self.postMessage(found));
}
