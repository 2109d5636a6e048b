// Draws every element with `data-chart`: {"series": [{"name": "…", "points": [[ms, value], …]}], "unit": "usd"}.
// `kind` is line or bars, `threshold` a line across. Needs vendor/uplot.min.js, loaded before it. See chart_view.py.
(() => {
  const drawn = new Map();
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const seriesColour = (at) => colour(`--rk-chart-${(at % 6) + 1}`);

  const SIZES = [[1e9, "G"], [1e6, "M"], [1e4, "k"]];
  function figure(value) {
    const size = SIZES.find(([limit]) => Math.abs(value) >= limit);
    if (size) return `${+(value / (size[1] === "k" ? 1e3 : size[0])).toFixed(1)}${size[1]}`;
    return Number.isInteger(value) ? String(value) : String(+value.toFixed(2));
  }
  function time(ms) {
    if (ms < 1000) return `${+ms.toFixed(0)} ms`;
    if (ms < 60_000) return `${+(ms / 1000).toFixed(1)} s`;
    return ms < 3_600_000 ? `${+(ms / 60_000).toFixed(1)} min` : `${+(ms / 3_600_000).toFixed(1)} h`;
  }
  const UNITS = {
    usd: (value) => `$${value !== 0 && Math.abs(value) < 0.1 ? value.toFixed(4) : value.toFixed(2)}`,
    ms: time,
    percent: (value) => `${figure(value)} %`,
    count: figure,
  };
  const said = (unit) => UNITS[unit] ?? figure;

  // Steps of the axes: whole numbers for counts, round times for times.
  const WHOLE = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
  const TIMES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 864e5];
  const STEPS = { count: WHOLE, ms: TIMES };
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
  const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  function moments(_chart, splits, _axis, _space, step) {
    return splits.map((at) => (step >= 86_400 ? day : hour).format(at * 1000));
  }

  // One column of times for all series; where a series has no point it has a gap.
  function columns(series) {
    const times = [...new Set(series.flatMap((each) => each.points.map(([at]) => at)))].sort((a, b) => a - b);
    const place = new Map(times.map((at, index) => [at, index]));
    const values = series.map((each) => {
      const column = new Array(times.length).fill(null);
      for (const [at, value] of each.points) column[place.get(at)] = value;
      return column;
    });
    return [times.map((at) => at / 1000), ...values];
  }

  function thresholdLine(spec) {
    return (chart) => {
      if (typeof spec.threshold !== "number") return;
      const y = Math.round(chart.valToPos(spec.threshold, "y", true)) + 0.5;
      const { left, top, width, height } = chart.bbox;
      if (y < top || y > top + height) return;
      chart.ctx.save();
      chart.ctx.strokeStyle = colour("--rk-bad");
      chart.ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
      chart.ctx.beginPath();
      chart.ctx.moveTo(left, y);
      chart.ctx.lineTo(left + width, y);
      chart.ctx.stroke();
      chart.ctx.restore();
    };
  }

  function range(spec) {
    return (_chart, low, high) => {
      const top = Math.max(high ?? 0, typeof spec.threshold === "number" ? spec.threshold : 0);
      const bottom = Math.min(low ?? 0, 0);
      return top === bottom ? [bottom, bottom + 1] : [bottom, top + (top - bottom) * 0.08];
    };
  }

  function options(spec, width, height) {
    const unit = said(spec.unit);
    const axis = { stroke: () => colour("--rk-muted"), grid: { stroke: () => colour("--rk-line"), width: 1 }, ticks: { show: false } };
    const bars = spec.kind === "bars" ? window.uPlot.paths.bars({ size: [0.7, 48], radius: 0.15 }) : undefined;
    return {
      width,
      height,
      scales: { y: { range: range(spec) } },
      axes: [
        { ...axis, space: 70, values: moments },
        { ...axis, size: 58, space: 34, incrs: STEPS[spec.unit], values: (_chart, splits) => splits.map(unit) },
      ],
      legend: { live: true },
      cursor: { y: false, points: { size: 7 } },
      hooks: { draw: [thresholdLine(spec)] },
      series: [
        { value: (_chart, at) => (at == null ? "–" : new Date(at * 1000).toLocaleString()) },
        ...spec.series.map((each, at) => ({
          label: each.name,
          stroke: () => seriesColour(at),
          fill: bars ? () => seriesColour(at) : undefined,
          width: 2,
          paths: bars,
          spanGaps: true,
          points: { show: !bars && each.points.length < 60, size: 6 },
          value: (_chart, value) => (value == null ? "–" : unit(value)),
        })),
      ],
    };
  }

  function size(element) {
    const width = Math.max(200, Math.floor(element.clientWidth));
    return { width, height: Number(element.dataset.height) || (width < 420 ? 160 : 200) };
  }

  function draw(element) {
    const words = element.dataset.chart;
    const known = drawn.get(element);
    if (known?.words === words && known.chart.root.isConnected) return;
    known?.chart.destroy();
    element.replaceChildren();
    const spec = JSON.parse(words);
    const { width, height } = size(element);
    const chart = new window.uPlot(options(spec, width, height), columns(spec.series), element);
    drawn.set(element, { words, chart });
    if (!known) resizing.observe(element);
  }

  const resizing = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const known = drawn.get(target);
      const { width, height } = size(target);
      if (known && known.chart.width !== width) known.chart.setSize({ width, height });
    }
  });

  function drawAll() {
    if (!window.uPlot) return;
    for (const [element, { chart }] of drawn) {
      if (element.isConnected) continue;
      resizing.unobserve(element);
      chart.destroy();
      drawn.delete(element);
    }
    for (const element of document.querySelectorAll("[data-chart]")) draw(element);
  }
  const repaint = () => {
    for (const { chart } of drawn.values()) chart.redraw();
  };

  drawAll();
  document.addEventListener("htmx:after:swap", drawAll);
  new MutationObserver(repaint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})();
