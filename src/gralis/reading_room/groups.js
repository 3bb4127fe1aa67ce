// The data set and its classes in numbers, with intervals that treat the inputs as a sample of many more.
"use strict";

function meanRows(names, values, halves, count) {
  const reach = 1.03 * Math.max(...values.slice(0, count).map((v, k) => Math.abs(v) + (known(halves[k]) ? halves[k] : 0))) || 1;
  const low = values.slice(0, count).some((v, k) => v - (halves[k] || 0) < 0) ? -reach : 0;
  return names.slice(0, count).map((name, k) => make("tr", {}, make("td", {}, name), make("td", { class: "bar-cell" }, bar(values[k], halves[k], low, reach)),
    make("td", { class: `right ${tone(values[k], halves[k])}` }, `${signed(values[k])}${margin(halves[k])}`)));
}

function table(caption, rows) {
  return make("div", { class: "scroll" }, make("table", { class: "bars" }, make("caption", { class: "missing" }, caption), make("tbody", {}, ...rows)));
}

function showGroups() {
  const { everyone, groups, level } = cases.head, most = 20;
  if (everyone.missing) {
    document.getElementById("statistics-about").textContent = everyone.missing;
    document.getElementById("compare").hidden = true;
    return;
  }
  document.getElementById("statistics-about").textContent = `Statistics of ${everyone.n.toLocaleString("en")} inputs with a result. Lines and ± are ${percent(level)} intervals for a larger population from which these inputs were drawn; they hold for all features of a table at once.`;
  replace("importance-box", table("Mean of φ over all inputs; positive raises the output on average.", meanRows(everyone.names, everyone.mean, everyone.mean_half, most)));
  const usable = groups.filter((group) => group.pairs.length);
  if (!usable.length) {
    replace("compare-box", make("p", { class: "missing" }, "There are no two classes to compare: the inputs have no labels, and one class was explained."));
    return;
  }
  const select = (id, label, options) => make("label", {}, `${label} `, make("select", { id, onchange: compareClasses }, ...options.map((text, k) => make("option", { value: k }, text))));
  const rebuild = () => {
    const { classes } = usable[Number(document.getElementById("compare-by").value)], names = classes.map(({ name, n }) => `${name} (${n})`);
    replace("compare-pair", select("compare-a", "Class", names), select("compare-b", "less", names));
    document.getElementById("compare-b").value = "1";
    compareClasses();
  };
  replace("compare-box", make("div", { class: "filters" }, make("label", {}, "Classes by ", make("select", { id: "compare-by", onchange: rebuild },
    ...usable.map((group, k) => make("option", { value: k }, group.by === "label" ? "label" : "explained class")))), make("span", { id: "compare-pair", class: "filters" })), make("div", { id: "compare-table" }));
  rebuild();

  function compareClasses() {
    const group = usable[Number(document.getElementById("compare-by").value)];
    const [a, b] = ["compare-a", "compare-b"].map((id) => Number(document.getElementById(id).value));
    if (a === b) return replace("compare-table", make("p", { class: "missing" }, "Choose two different classes."));
    const pair = group.pairs.find((each) => each.a === Math.min(a, b) && each.b === Math.max(a, b)), turn = a < b ? 1 : -1;
    const values = pair.mean.map((v) => turn * v), order = values.map((_, k) => k).sort((x, y) => Math.abs(values[y]) - Math.abs(values[x]));
    const clear = order.filter((k) => certain(values[k], pair.half[k])).length;
    const names = [a, b].map((k) => group.classes[k].name);
    return replace("compare-table", make("p", {}, `${clear || "No"} feature${clear === 1 ? "" : "s"} can be told apart. The ± of this table hold at once; those of several tables do not.`),
      table(`Mean φ of ${names[0]} less mean φ of ${names[1]}; positive: it raises the output more in ${names[0]}.`,
        meanRows(order.map((k) => everyone.names[k]), order.map((k) => values[k]), order.map((k) => pair.half[k]), most)));
  }
}
