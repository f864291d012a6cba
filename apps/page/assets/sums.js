// Figures from the page's own columns: for the charts, and for tests to compare with the tables.

/// Share of the working threads' time by what they did, in equal parts of the run: busy, then each cause.
function usage(run, bins) {
  const [from, to] = run.span;
  const width = (to - from) / bins;
  const layers = Array.from({length: 1 + run.causes.length}, () => new Float64Array(bins));
  const add = (layer, start, end, weight) => {
    start = Math.max(start, from);
    end = Math.min(end, to);
    if (end <= start) return;
    const last = Math.min(bins - 1, Math.floor((end - from) / width));
    for (let b = Math.floor((start - from) / width); b <= last; ++b) {
      const low = from + b * width;
      layer[b] += weight * Math.max(0, Math.min(end, low + width) - Math.max(start, low));
    }
  };
  eachBusy(run, (t, start, end, weight) => add(layers[0], start, end, weight));
  for (const t of run.working) {
    for (let k = run.idle.first[t]; k < run.idle.first[t + 1]; ++k) {
      add(layers[1 + run.idle.cause[k]], run.idle.start[k], run.idle.end[k], 1);
    }
  }
  const all = Math.max(1, run.working.length * width);
  const rest = layers[1 + run.causes.indexOf('runtime')];
  for (let b = 0; b < bins; ++b) {
    const sum = layers.reduce((total, layer) => total + layer[b], 0);
    if (rest) rest[b] += Math.max(0, all - sum);
    for (const layer of layers) layer[b] /= all;
  }
  return layers;
}

/// Calls `take(thread, start, end, weight)` for the time in which each working thread was busy, each part once.
function eachBusy(run, take) {
  const {tasks} = run;
  for (const t of run.working) {
    let now = run.span[0];
    for (let i = tasks.first[t]; i < tasks.first[t + 1]; ++i) {
      const start = Math.max(now, tasks.start[i]);
      const end = Math.min(tasks.end[i], run.span[1]);
      if (end <= start) continue;
      const weight = tasks.idle ? 1 - tasks.idle[i] / (tasks.end[i] - tasks.start[i]) : 1;
      take(t, start, end, weight);
      now = end;
    }
  }
}

/// What tests compare with `heddle analyze --report`.
function decodedFigures(run) {
  const {tasks, idle, details, transfers} = run;
  const busy = new Map(run.working.map((t) => [t, 0]));
  eachBusy(run, (t, start, end, weight) => busy.set(t, busy.get(t) + weight * (end - start)));
  const span = run.span[1] - run.span[0];
  const threads = run.working.map((t) => {
    const causes = Object.fromEntries(run.causes.map((cause) => [cause, 0]));
    for (let k = idle.first[t]; k < idle.first[t + 1]; ++k) causes[run.causes[idle.cause[k]]] += idle.end[k] - idle.start[k];
    if ('runtime' in causes) causes.runtime = span - busy.get(t) - Object.values(causes).reduce((a, b) => a + b, 0);
    for (const cause of run.causes) causes[cause] *= 1e-9;
    return {node: run.threads[t].node, name: run.threads[t].name, busy: busy.get(t) * 1e-9, idle: causes};
  });
  const kernels = new Map();
  for (let i = 0; details && i < tasks.n; ++i) {
    if (details.job[i] !== run.job) continue;
    const key = `${run.names[tasks.kernel[i]]} on a ${run.threads[tasks.thread[i]].role}`;
    if (!kernels.has(key)) kernels.set(key, []);
    kernels.get(key).push(tasks.end[i] - tasks.start[i]);
  }
  const kernelFigures = {};
  for (const [key, ns] of kernels) {
    const sorted = Float64Array.from(ns).sort();
    kernelFigures[key] = {
      count: ns.length, seconds: ns.reduce((a, b) => a + b, 0) * 1e-9, median_us: sorted[Math.round((ns.length - 1) / 2)] * 1e-3,
    };
  }
  const sum = (all) => {
    const mine = all ? Array.from(all.bytes).filter((_, i) => all.job[i] === run.job) : [];
    return {count: mine.length, bytes: mine.reduce((a, b) => a + b, 0)};
  };
  let dependencies = null;
  if (run.links && tasks.n <= 200000) {
    dependencies = 0;
    for (let i = 0; i < tasks.n; ++i) if (details.job[i] === run.job) dependencies += run.links.before(i).length;
  }
  return {
    seconds: span * 1e-9, tasks: Object.values(kernelFigures).reduce((total, one) => total + one.count, 0), threads, kernels: kernelFigures, dependencies,
    messages: sum(transfers?.messages), copies: sum(transfers?.copies),
  };
}
