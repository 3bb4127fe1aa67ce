// Numbers as one would write them, and elements; text only ever enters a page as text.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value); // a script may, an attribute may not
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function replace(id, ...children) {
  document.getElementById(id).replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

function known(value) { return value !== null && value !== undefined && Number.isFinite(value); }

function number(value, digits = 3) {
  if (!known(value)) return "unknown";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4
    ? value.toExponential(digits - 1)
    : value.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
  return text.replace("-", "−");
}

function signed(value) { return known(value) && value > 0 ? `+${number(value)}` : number(value); }

function margin(half) {
  if (half === 0) return "";
  return known(half) ? ` ±\u00a0${number(half, 2)}` : " ±\u00a0unknown";
}

function percent(share) {
  if (!known(share)) return "–";
  if (share !== 0 && Math.abs(share) < 0.001) return "less than 0.1 %";
  const text = Math.abs(share) < 0.1 ? (100 * share).toFixed(1) : (100 * share).toFixed(0);
  return `${text.replace("-", "−")} %`;
}

function side(value) { return value > 0 ? "for" : value < 0 ? "against" : ""; }

// The colour of a number in a text: none while its sign is not certain.
function tone(value, half) { return half === 0 || certain(value, half) ? side(value) : ""; }

function certain(value, half) { return known(half) && Math.abs(value) > half; }

function ordinal(count) {
  const ending = count % 100 >= 11 && count % 100 <= 13 ? "th" : { 1: "st", 2: "nd", 3: "rd" }[count % 10] || "th";
  return `${count}${ending}`;
}

function capital(text) { return text.charAt(0).toUpperCase() + text.slice(1); }

// A signed bar with its whisker on a scale from low to high.
function bar(value, half, low, high, from = 0, kind = side(value)) {
  const at = (v) => `${100 * (Math.min(Math.max(v, low), high) - low) / (high - low)}%`;
  const wide = (a, b) => `${100 * Math.abs(Math.min(Math.max(b, low), high) - Math.min(Math.max(a, low), high)) / (high - low)}%`;
  const end = from + value;
  const box = make("div", { class: "bar", "aria-hidden": "true" },
    make("span", { class: "zero", style: { left: at(0) } }),
    make("span", { class: `fill ${kind}`, style: { left: at(Math.min(from, end)), width: wide(from, end) } }));
  if (known(half) && half > 0) {
    box.append(make("span", { class: "whisker", style: { left: at(end - half), width: wide(end - half, end + half) } }));
  }
  return box;
}

// Save text or bytes under a name.
function download(name, data, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([data], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
