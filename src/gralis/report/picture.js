// The picture with its regions. Each is a button: pointed at, tapped or reached by the arrow keys it is chosen.
"use strict";

const LIT = 0.8, FAINT = 0.06, N_BOLD = 8, MOST_TAGS = 60;

function hatch(id, colour) {
  return draw("pattern", { id, width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    draw("rect", { width: 4, height: 4, fill: colour, "fill-opacity": 0.28 }),
    draw("rect", { width: 1.7, height: 4, fill: colour }));
}

// The drawing for one set of values; `call` has choose(i), point(i) and leave(), or is null for a small picture.
function drawPicture(content, prefix, call) {
  const { picture, features } = content, { colours } = picture;
  const svg = draw("svg", { viewBox: `0 0 ${picture.width} ${picture.height}`, class: "picture",
    role: call ? "group" : "img", "aria-label": call ? `The picture with its ${features.n} regions; arrow keys go from one to the next` : "The same picture" });
  svg.append(draw("defs", {}, hatch(`${prefix}for`, colours.for), hatch(`${prefix}against`, colours.against)));
  svg.append(draw("image", { href: picture.pixels, width: picture.width, height: picture.height, class: "photo", preserveAspectRatio: "none" }));
  if (!picture.regions) {
    svg.append(draw("image", { href: picture.heat, width: picture.width, height: picture.height, preserveAspectRatio: "none" }));
    return { svg, paint() {}, choose() {} };
  }
  const paths = picture.regions.map((region, i) => {
    const path = draw("path", { d: region.path, class: "region", "data-region": i, "fill-rule": "evenodd" });
    if (call) pointable(path, i, call);
    return path;
  });
  const links = draw("g", { class: "links" }), tags = draw("g", { "aria-hidden": "true" });
  const halo = draw("path", { class: "halo" }), inner = draw("path", { class: "halo inner" });
  svg.append(draw("g", {}, ...paths), halo, inner, links, tags);

  function paint(values, halves, limit, order) {
    paths.forEach((path, i) => {
      const strength = Math.abs(values[i]) / (limit || 1), kind = side(values[i]) || "for";
      const sure = certain(values[i], halves[i]);
      path.setAttribute("fill", sure ? colours[kind] : `url(#${prefix}${kind})`);
      path.setAttribute("fill-opacity", FAINT + LIT * Math.min(strength, 1));
      if (!call) return;
      nameMark(path, features, i, values[i], halves[i], order[0]);
    });
    if (!call) return;
    const shown = features.n <= MOST_TAGS ? order : order.slice(0, N_BOLD), size = Math.max(5, Math.min(8, picture.width / 30));
    tags.replaceChildren(...shown.map((i, rank) => {
      const [x, y] = picture.regions[i].at, bold = rank < N_BOLD;
      return draw("text", { x, y, class: bold ? "tag" : "tag faint", "data-tag": i, "font-size": bold ? size : 0.75 * size }, features.tags[i]);
    }));
  }

  // Lay a line around one region, and lines to those it acts together with.
  function choose(i, partners) {
    for (const each of [halo, inner]) each.setAttribute("d", i === null ? "" : picture.regions[i].path);
    links.replaceChildren(...(i === null ? [] : partners).map((j) => {
      const [x1, y1] = picture.regions[i].at, [x2, y2] = picture.regions[j].at;
      return draw("line", { x1, y1, x2, y2 });
    }));
  }

  if (call) wireKeys(svg, paths, call);
  return { svg, paint, choose };
}

function legend(limit, noun) {
  const tagged = Boolean(CONTENT.picture.regions);
  return make("div", { class: "legend small" },
    make("span", { class: "scale" }, make("span", {}, `lowers −${number(limit, 2)}`), make("span", { class: "ramp", "aria-hidden": "true" }),
      make("span", {}, `+${number(limit, 2)} raises`)),
    make("span", {}, make("span", { class: "swatch", "aria-hidden": "true" }), "sign not certain"),
    !tagged ? null : make("span", {}, `a number or name on the picture is that of the ${noun}; the ${N_BOLD} strongest are bold`));
}
