// A volume in three planes. Each has a slider and can be scrolled; a click chooses the region under the pointer.
"use strict";

const PLANES = ["first", "second", "third"]; // the axis along which a plane is cut

function unpackBytes({ dtype, base64 }) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return dtype === "<i4" ? new Int32Array(bytes.buffer) : bytes;
}

function drawVolume({ view, picture: { colours = { for: "#d6604d", against: "#4393c3" } } }, call) {
  const { shape } = view, grey = unpackBytes(view.voxels), owner = unpackBytes(view.labels), at = shape.map((side) => Math.floor(side / 2));
  const strides = [shape[1] * shape[2], shape[2], 1], now = { values: null, halves: null, limit: 1, chosen: null };
  const parts = (colour) => [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)), tint = { for: parts(colours.for), against: parts(colours.against) };
  const planes = PLANES.map((name, axis) => {
    const [down, across] = [0, 1, 2].filter((other) => other !== axis);
    const canvas = make("canvas", { width: shape[across], height: shape[down], role: "img", "data-plane": axis });
    const slider = make("input", { type: "range", min: 0, max: shape[axis] - 1, value: at[axis], "aria-label": `Slice along the ${name} axis`,
      oninput: (event) => { at[axis] = Number(event.target.value); paintPlane(axis); } });
    const caption = make("label", {}), index = (row, column) => at[axis] * strides[axis] + row * strides[down] + column * strides[across];
    const under = (event) => {
      const box = canvas.getBoundingClientRect();
      const clamp = (v, side) => Math.max(0, Math.min(side - 1, Math.floor(v)));
      return owner[index(clamp((event.clientY - box.top) / box.height * shape[down], shape[down]), clamp((event.clientX - box.left) / box.width * shape[across], shape[across]))];
    };
    canvas.addEventListener("click", (event) => call.choose(under(event)));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      at[axis] = Math.max(0, Math.min(shape[axis] - 1, at[axis] + Math.sign(event.deltaY)));
      slider.value = at[axis];
      paintPlane(axis);
    }, { passive: false });
    return { axis, down, across, canvas, slider, caption, index, element: make("div", {}, canvas, caption, slider) };
  });

  function paintPlane(axis) {
    const { canvas, caption, down, across, index } = planes[axis], [tall, wide] = [shape[down], shape[across]], pen = canvas.getContext("2d", { willReadFrequently: true }), image = pen.createImageData(wide, tall);
    for (let row = 0; row < tall; row++) {
      for (let column = 0; column < wide; column++) {
        const place = index(row, column), i = owner[place], value = now.values ? now.values[i] : 0, base = 40 + 0.8 * grey[place], to = 4 * (row * wide + column);
        const sure = !now.values || certain(value, now.halves[i]) || now.halves[i] === 0, hatched = !sure && (row + column) % 4 < 2;
        const strength = value && !hatched ? LIT * Math.min(Math.abs(value) / (now.limit || 1), 1) : 0, colour = tint[side(value) || "for"];
        const edge = i === now.chosen && [[0, 1], [1, 0]].some(([a, b]) => (row + a < tall && column + b < wide && owner[index(row + a, column + b)] !== i) || (row >= a && column >= b && owner[index(row - a, column - b)] !== i));
        for (let k = 0; k < 3; k++) image.data[to + k] = edge ? 255 : (1 - strength) * base + strength * colour[k];
        image.data[to + 3] = 255;
      }
    }
    pen.putImageData(image, 0, 0);
    caption.textContent = `Across the ${PLANES[axis]} axis: slice ${at[axis] + 1} of ${shape[axis]}`;
    canvas.setAttribute("aria-label", caption.textContent);
  }

  return {
    svg: make("div", { class: "volume" }, ...planes.map((plane) => plane.element)),
    paint(values, halves, limit) { Object.assign(now, { values, halves, limit }); planes.forEach(({ axis }) => paintPlane(axis)); },
    choose(i) {
      if (now.chosen === i) return;
      now.chosen = i;
      planes.forEach(({ axis, slider }) => { // through the middle of the region
        at[axis] = Math.max(0, Math.min(shape[axis] - 1, Math.round(view.centres[i][axis])));
        slider.value = at[axis];
      });
      planes.forEach(({ axis }) => paintPlane(axis));
    },
  };
}
