"use strict";
// Draws the charts from the page's own data. Plotly draws; legends are buttons of the page, so that keys reach them.
(() => {
  const { methods, charts } = JSON.parse(document.getElementById("page-data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)");
  // Okabe and Ito's colours, which colour-blind people can tell apart; from the ninth method on, dashed.
  const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#555555", "#7a4fbf"];
  const DARK = ["#4fb0f0", "#ff8c42", "#2fd0a0", "#f0a0cc", "#f0c94a", "#9ad8ff", "#bbbbbb", "#b79cf5"];
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const hidden = new Set();
  const number = (name) => methods.indexOf(name);
  const colour = (i) => (dark.matches ? DARK : LIGHT)[i % LIGHT.length];
  const dash = (i) => DASHES[Math.floor(i / LIGHT.length) % DASHES.length];
  const pale = (hex, share) => hex + Math.round(share * 255).toString(16).padStart(2, "0");
  const chosen = (id, otherwise) => document.getElementById(id)?.value ?? otherwise;
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // The mean of the last evaluations at each one: what was known at that step, nothing later.
  function smooth(values) {
    const window = Number(chosen("window", 1));
    return values.map((_, i) => { const last = values.slice(Math.max(0, i + 1 - window), i + 1); return last.reduce((a, b) => a + b) / last.length; });
  }

  function curves(chart) {
    const axis = chosen("axis", "x"), statistic = chosen("statistic", "mean");
    const each = document.getElementById("seeds")?.checked;
    const traces = [];
    for (const one of chart.methods) {
      const i = number(one.method), visible = !hidden.has(one.method), line = colour(i), x = one[axis];
      const [y, low, high, words] = (statistic === "mean"
        ? [one.mean, one.mean.map((m, k) => m - one.sd[k]), one.mean.map((m, k) => m + one.sd[k]), "mean"]
        : [one.iqm, one.low, one.high, "IQM"]).map((part) => (Array.isArray(part) ? smooth(part) : part));
      const name = escaped(one.method), several = one.seeds.length > 1;
      if (several) traces.push({
        x: [...x, ...[...x].reverse()], y: [...high, ...[...low].reverse()], fill: "toself", fillcolor: pale(line, 0.16),
        line: { width: 0 }, hoverinfo: "skip", mode: "lines", visible, name,
      });
      for (const seed of each ? one.seeds : []) traces.push({
        x: seed[axis], y: smooth(seed.y), mode: "lines", line: { color: pale(line, 0.55), width: 1, dash: dash(i) }, visible, name,
        hovertemplate: `<b>${name}</b>, seed ${seed.seed}<br>%{x:,} ${axis === "x" ? "steps" : "h"}: %{y:,.4~g}<extra></extra>`,
      });
      const spread = several ? "<br>%{customdata[0]:,.4~g} to %{customdata[1]:,.4~g}" : "";
      traces.push({
        x, y, mode: "lines", line: { color: line, width: 2.5, dash: dash(i) }, visible, name,
        customdata: low.map((value, k) => [value, high[k]]),
        hovertemplate: `<b>${name}</b><br>%{x:,} ${axis === "x" ? "steps" : "h"}` +
          `<br>${several ? words : "return"} %{y:,.4~g}${spread}<extra></extra>`,
      });
    }
    return [traces, { xaxis: { title: { text: axis === "x" ? "env steps" : "hours (mean over seeds)" }, rangemode: "tozero" },
      yaxis: { title: { text: "evaluation return" } } }];
  }

  function bias(chart) {
    const each = document.getElementById("seeds")?.checked, traces = [];
    for (const one of chart.methods) {
      const i = number(one.method), visible = !hidden.has(one.method), name = escaped(one.method), line = colour(i);
      for (const seed of each ? one.seeds : []) traces.push({
        x: seed.x, y: seed.y, mode: "lines", line: { color: pale(line, 0.5), width: 1, dash: dash(i) }, visible,
        hovertemplate: `<b>${name}</b>, seed ${seed.seed}<br>%{x:,} steps: %{y:.3~g}<extra></extra>`,
      });
      traces.push({
        x: one.x, y: one.mean, mode: "lines", line: { color: line, width: 2, dash: dash(i) }, visible, name,
        hovertemplate: `<b>${name}</b><br>%{x:,} steps<br>bias %{y:.3~g}<extra></extra>`,
      });
    }
    return [traces, { xaxis: { title: { text: "env steps" }, rangemode: "tozero" }, yaxis: { title: { text: "model bias" }, rangemode: "tozero" } }];
  }

  function kept(chart) {
    const run = chart.runs[Number(chosen("kept-run", 0))];
    return [[{
      type: "heatmap", x: run.x, y: run.z.map((_, i) => i), z: run.z, colorscale: "Viridis", hoverongaps: false, xgap: 0, ygap: 1,
      colorbar: { title: { text: "bias" }, thickness: 12 },
      hovertemplate: "member %{y}<br>%{x:,} steps<br>bias %{z:.3~g}<extra></extra>",
    }], { xaxis: { title: { text: "env steps" }, showgrid: false }, yaxis: { title: { text: "member" }, dtick: 1, showgrid: false, zeroline: false } }];
  }

  function effect(chart) {
    const traces = [];
    chart.lines.forEach((line, i) => {
      const values = [...new Set(line.points.map((point) => point[0]))];
      const mean = (value) => { const y = line.points.filter((p) => p[0] === value).map((p) => p[1]); return y.reduce((a, b) => a + b) / y.length; };
      traces.push({ x: values, y: values.map(mean), mode: "lines", line: { color: colour(i), width: 2, dash: dash(i) }, name: line.name, legendgroup: i, hoverinfo: "skip" });
      traces.push({
        x: line.points.map((p) => p[0]), y: line.points.map((p) => p[1]), text: line.points.map((p) => p[2]), mode: "markers",
        marker: { color: colour(i), size: 8, opacity: 0.7 }, legendgroup: i, showlegend: false,
        hovertemplate: `${chart.setting} %{x}, ${line.name}<br>seed %{text}<br>return %{y:,.4~g}<extra></extra>`,
      });
    });
    return [traces, { showlegend: true, legend: { orientation: "h", y: 1.12 }, xaxis: { title: { text: chart.setting } }, yaxis: { title: { text: "final return" } } }];
  }

  function map(chart, width) {
    const few = Math.max(chart.values[0].length, chart.values[1].length) <= 13 && width > 380;
    const category = (values) => ({ type: "category", tickvals: values.map(String), showgrid: false });
    const at = chart.values.map((values, axis) => values.findIndex((v) => Math.abs(v - chart.neutral[axis]) < 1e-9));
    const frame = at.every((i) => i >= 0) ? [{ type: "rect", x0: at[1] - 0.5, x1: at[1] + 0.5, y0: at[0] - 0.5, y1: at[0] + 0.5, line: { color: "#d62728", width: 3 } }] : [];
    const [low, high] = chart.range, x = chart.values[1].map(String), y = chart.values[0].map(String);
    const cells = chart.z.flatMap((row, i) => row.map((value, j) => [x[j], y[i], value]));
    // The numbers are a trace of their own: Plotly's choice of their colour is hard to read on half of this scale.
    const numbers = {
      x: cells.map((c) => c[0]), y: cells.map((c) => c[1]), text: cells.map((c) => c[2].toFixed(Math.abs(high) >= 100 ? 0 : 1)), mode: "text", hoverinfo: "skip",
      textfont: { size: 9.5, color: cells.map((c) => ((c[2] - low) / (high - low || 1) < 0.6 ? "#fff" : "#000")) },
    };
    return [[{
      type: "heatmap", x, y, z: chart.z, zmin: low, zmax: high, colorscale: "Viridis", colorbar: { thickness: 10 },
      hovertemplate: `${chart.axes[0]}: %{y}<br>${chart.axes[1]}: %{x}<br>mean return %{z:,.4~g}<extra></extra>`,
    }, ...(few ? [numbers] : [])], { xaxis: { title: { text: chart.axes[1] }, ...category(chart.values[1]) }, yaxis: { title: { text: chart.axes[0] }, ...category(chart.values[0]) }, shapes: frame }];
  }

  function line(chart) {
    return [[{ x: chart.values[0], y: chart.z, mode: "lines+markers", line: { color: colour(0), width: 2 }, hovertemplate: `${chart.axes[0]}: %{x}<br>mean return %{y:,.4~g}<extra></extra>` }],
      { xaxis: { title: { text: chart.axes[0] } }, yaxis: { title: { text: "mean return" }, range: chart.range } }];
  }

  const KINDS = { curves, bias, kept, effect, map, line };

  function draw(figure, keep) {
    const chart = charts[Number(figure.dataset.chart)], place = figure.querySelector(".plot");
    const narrow = place.clientWidth < 500;
    const [traces, extra] = KINDS[chart.kind](chart, place.clientWidth);
    const line = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: css("--text"), size: narrow ? 11 : 13, family: getComputedStyle(document.body).fontFamily },
      margin: { l: narrow ? 44 : 60, r: 12, t: 28, b: 52 }, showlegend: false, hovermode: "closest", hoverdistance: 40,
      // On a touch screen a finger that moves must scroll the page; the chart's own buttons still zoom.
      dragmode: coarse.matches ? false : "zoom", uirevision: keep ? "kept" : String(Math.random()),
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--quiet"), activecolor: css("--text") },
      hoverlabel: { bgcolor: css("--soft"), bordercolor: css("--line"), font: { color: css("--text") } },
      ...extra, xaxis: { ...line, ...extra.xaxis }, yaxis: { ...line, ...extra.yaxis },
    };
    const config = { responsive: true, displaylogo: false, displayModeBar: coarse.matches ? true : "hover", modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]] };
    Plotly.react(place, traces, layout, config);
    figure.dataset.drawn = "yes";
  }

  function swatch(i) {
    const pattern = { solid: "", dash: "6 3", dot: "2 2", dashdot: "6 2 2 2" }[dash(i)];
    return `<svg class="swatch" width="18" height="10" aria-hidden="true"><line x1="0" x2="18" y1="5" y2="5" stroke="${colour(i)}" stroke-width="3" stroke-dasharray="${pattern}"/></svg>`;
  }

  function legend(figure) {
    const chart = charts[Number(figure.dataset.chart)];
    if (!["curves", "bias"].includes(chart.kind)) return;
    figure.querySelector(".legend")?.remove();
    const box = document.createElement("div");
    box.className = "legend";
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Methods shown");
    for (const { method } of chart.methods) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.toggles = method;
      button.setAttribute("aria-pressed", String(!hidden.has(method)));
      button.innerHTML = swatch(number(method));
      button.append(method);
      button.addEventListener("click", () => toggle(method));
      box.append(button);
    }
    const both = document.createElement("span");
    for (const [words, show] of [["show all", true], ["hide all", false]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "plain";
      button.append(words);
      button.addEventListener("click", () => { methods.forEach((name) => (show ? hidden.delete(name) : hidden.add(name))); shown(); });
      both.append(button);
    }
    box.append(both);
    figure.append(box);
  }

  function toggle(method) {
    if (!hidden.delete(method)) hidden.add(method);
    shown();
  }

  function shown() {
    for (const button of document.querySelectorAll("button[data-toggles]"))
      button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.toggles)));
    redraw(["curves", "bias"], true);
  }

  const figures = [...document.querySelectorAll("figure[data-chart]")];
  function redraw(kinds, keep) {
    for (const figure of figures)
      if (figure.dataset.drawn && kinds.includes(charts[Number(figure.dataset.chart)].kind)) draw(figure, keep);
  }

  function paint() {
    for (const cell of document.querySelectorAll("th[data-method]")) {
      cell.querySelector("svg")?.remove();
      cell.insertAdjacentHTML("afterbegin", swatch(number(cell.dataset.method)));
      cell.parentElement.querySelectorAll(".interval").forEach((svg) => (svg.style.color = colour(number(cell.dataset.method))));
    }
    figures.forEach(legend);
    redraw(Object.keys(KINDS), true);
  }

  paint();
  // A chart is drawn when it comes near the window: a hundred runs open as fast as one.
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target, false); }
  }, { rootMargin: "400px" });
  figures.forEach((figure) => near.observe(figure));
  dark.addEventListener("change", paint);
  addEventListener("beforeprint", () => figures.forEach((figure) => figure.dataset.drawn || draw(figure, false)));
  for (const id of ["statistic", "window", "seeds"]) document.getElementById(id)?.addEventListener("change", () => redraw(["curves", "bias"], true));
  document.getElementById("axis")?.addEventListener("change", () => redraw(["curves"], false));
  document.getElementById("kept-run")?.addEventListener("change", () => redraw(["kept"], false));
})();
