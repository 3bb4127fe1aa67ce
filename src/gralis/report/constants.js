// The numbers that this arithmetic shares with the Python package. They come with the report; none is copied here.
"use strict";

let sharedConstants = null;

function useConstants(constants) { sharedConstants = constants; }

// One of the numbers of gralis.report.constants. Without it nothing is computed.
function constant(name) {
  if (!sharedConstants || !(name in sharedConstants)) throw new Error(`the report lacks the constant ${name}`);
  return sharedConstants[name];
}
