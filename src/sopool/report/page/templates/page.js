"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const print = matchMedia("print");

  // Colours in the charts are names of the page's variables; a band is the colour of its line, thin.
  const colour = (name) => {
    const band = name.endsWith("-band");
    const value = getComputedStyle(document.documentElement).getPropertyValue(`--${band ? name.slice(0, -5) : name}`).trim();
    return value ? value + (band ? "30" : "") : name;
  };
  const painted = (value, key = "") => {
    if (Array.isArray(value)) return value.map((item) => (typeof item === "object" ? painted(item) : item));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, painted(inner, name)]));
    }
    return key === "color" || key === "fillcolor" ? colour(value) : value;
  };

  // Beside long names a phone has no space for the chart: break names and titles into two lines.
  const narrow = ({ xaxis, yaxis }) => {
    const names = yaxis.categoryarray;
    if (!names) return;
    const ticktext = names.map((name) => name.replace(/^(.*?, .*?), /, "$1,<br>"));
    Object.assign(yaxis, { tickmode: "array", tickvals: names, ticktext, tickfont: { size: 10 } });
    xaxis.title = { ...xaxis.title, text: xaxis.title.text.replace(/, (?=with )/, ",<br>") };
  };

  const draw = (plot) => {
    const spec = JSON.parse(plot.parentElement.querySelector("script").textContent);
    const { data, layout } = painted(spec);
    const axis = { gridcolor: colour("line"), linecolor: colour("line"), tickcolor: colour("line"), fixedrange: true };
    const base = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false };
    base.font = { color: colour("ink"), family: "system-ui, sans-serif", size: 12 };
    base.hoverlabel = { bgcolor: colour("raised"), font: { color: colour("ink") } };
    layout.xaxis = { ...axis, automargin: true, ...layout.xaxis };
    layout.yaxis = { ...axis, automargin: true, ...layout.yaxis };
    if (plot.clientWidth < 480) narrow(layout);
    plot.dataset.drawn = "yes";
    return Plotly.react(plot, data, { ...base, ...layout }, { displayModeBar: false, responsive: true });
  };

  // A chart is drawn when it comes near: a page may have hundreds.
  const near = new IntersectionObserver((seen) => {
    for (const one of seen) {
      if (one.isIntersecting) {
        near.unobserve(one.target);
        draw(one.target);
      }
    }
  }, { rootMargin: "400px" });
  all(".plot").forEach((plot) => near.observe(plot));
  const redraw = () => all(".plot[data-drawn]").forEach(draw);
  dark.addEventListener("change", redraw);

  const choose = (protocol) => {
    all("[data-protocol]").forEach((part) => { part.hidden = part.dataset.protocol !== protocol; });
  };
  all("input[name=protocol]").forEach((input) => {
    input.addEventListener("change", () => choose(input.value));
    if (input.checked) choose(input.value);
  });

  const key = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value.replace("inf", "Infinity")) : cell.textContent.trim();
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
  all("table.sortable thead button").forEach((button) => {
    button.addEventListener("click", () => {
      const header = button.parentElement;
      const ascending = header.getAttribute("aria-sort") !== "ascending";
      all("th", header.parentElement).forEach((other) => other.setAttribute("aria-sort", "none"));
      header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const body = header.closest("table").tBodies[0];
      const rows = [...body.rows].sort((a, b) => compare(key(a, header.cellIndex), key(b, header.cellIndex)));
      body.append(...(ascending ? rows : rows.reverse()));
    });
  });

  // On paper nothing can be opened: show all that belongs to the chosen protocol, in the colours of paper.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((one) => { one.open = true; });
    all(".plot").filter((plot) => plot.offsetParent).forEach(draw);
  });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
  print.addEventListener("change", redraw);
})();
