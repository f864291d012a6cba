// The overview of a run with the part that the timeline shows, the queues, and who sends to whom.

/// What threads did, over the whole run; dragging chooses what the timeline shows.
class Overview {
  constructor(run, timeline) {
    Object.assign(this, {run, timeline});
    this.canvas = h('canvas', {class: 'overview', title: 'drag to choose what the timeline shows'});
    this.element = h('div', {class: 'overview-box'}, this.canvas);
    this.layers = usage(run, 1000);
    const at = (event) => run.span[0] + (event.offsetX - GUTTER) / (this.width - GUTTER) * (run.span[1] - run.span[0]);
    this.canvas.addEventListener('pointerdown', (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.from = at(event);
    });
    this.canvas.addEventListener('pointermove', (event) => {
      if (this.from == null) return;
      const to = at(event);
      if (Math.abs(to - this.from) > (run.span[1] - run.span[0]) * 0.003) timeline.show(Math.min(this.from, to), Math.max(this.from, to));
    });
    this.canvas.addEventListener('pointerup', (event) => {
      const half = (timeline.state.t1 - timeline.state.t0) / 2;
      const to = at(event);
      if (Math.abs(to - this.from) <= (run.span[1] - run.span[0]) * 0.003) timeline.show(to - half, to + half);
      this.from = null;
    });
  }

  draw() {
    const {run, timeline} = this;
    const colors = theme();
    this.width = Math.max(200, this.element.clientWidth);
    const plot = this.width - GUTTER;
    const heights = {usage: 84, queue: run.counters.length > 0 ? 52 : 0};
    const height = heights.usage + (heights.queue ? heights.queue + 8 : 0);
    const context = sized(this.canvas, this.width, height);
    const key = `${this.canvas.width} ${this.canvas.height} ${colors.card}`;
    if (this.key !== key) {  // it looks the same whatever the timeline shows
      this.key = key;
      this.still ??= h('canvas', {});
      const still = sized(this.still, this.width, height);
      this.drawUsage(still, plot, heights.usage, colors);
      if (heights.queue) this.drawQueue(still, plot, heights.usage + 8, heights.queue, colors);
    }
    context.drawImage(this.still, 0, 0, this.width, height);
    const x = (time) => GUTTER + Math.max(0, Math.min(1, (time - run.span[0]) / (run.span[1] - run.span[0]))) * plot;
    const [a, b] = [x(timeline.state.t0), x(timeline.state.t1)];
    context.fillStyle = colors.card;
    context.globalAlpha = 0.5;
    context.fillRect(GUTTER, 0, a - GUTTER, height);
    context.fillRect(b, 0, this.width - b, height);
    context.globalAlpha = 1;
    context.strokeStyle = colors.accent;
    context.strokeRect(a + 0.5, 0.5, Math.max(2, b - a - 1), height - 1);
  }

  label(context, text, y, colors) {
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = colors.soft;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillText(text, GUTTER - 10, y);
    context.textAlign = 'left';
  }

  drawUsage(context, plot, height, colors) {
    const {layers, run} = this;
    const bins = layers[0].length;
    const fills = [colors.busy, ...run.causes.map((_, i) => causeColor(run.causes, i, colors))];
    const below = new Float64Array(bins);
    context.fillStyle = colors.lane;
    context.fillRect(GUTTER, 0, plot, height);
    layers.forEach((layer, k) => {
      context.fillStyle = fills[k];
      context.beginPath();
      for (let b = 0; b < bins; ++b) {
        const y = height * (1 - Math.min(1, below[b] + layer[b]));
        context.lineTo(GUTTER + b / bins * plot, y);
        context.lineTo(GUTTER + (b + 1) / bins * plot, y);
      }
      for (let b = bins - 1; b >= 0; --b) {
        const y = height * (1 - Math.min(1, below[b]));
        context.lineTo(GUTTER + (b + 1) / bins * plot, y);
        context.lineTo(GUTTER + b / bins * plot, y);
        below[b] += layer[b];
      }
      context.fill();
    });
    this.label(context, '100 %', 7, colors);
    this.label(context, 'of the threads', height / 2, colors);
    this.label(context, '0', height - 6, colors);
  }

  drawQueue(context, plot, top, height, colors) {
    const {run} = this;
    const all = run.counters;
    const most = Math.max(1, ...all.map((one) => one.most.reduce((a, b) => Math.max(a, b), 0)));
    const y = (value) => top + height - value / most * (height - 2);
    context.fillStyle = colors.lane;
    context.fillRect(GUTTER, top, plot, height);
    for (const series of all) {
      const x = (i) => GUTTER + i / series.mean.length * plot;
      if (all.length <= 4) {
        context.fillStyle = colors.accent;
        context.globalAlpha = 0.25;
        context.beginPath();
        context.moveTo(x(0), y(0));
        series.most.forEach((value, i) => { context.lineTo(x(i), y(value)); context.lineTo(x(i + 1), y(value)); });
        context.lineTo(x(series.most.length), y(0));
        context.fill();
      }
      context.globalAlpha = all.length <= 4 ? 1 : Math.max(0.15, 4 / all.length);
      context.strokeStyle = colors.accent;
      context.beginPath();
      series.mean.forEach((value, i) => { context.lineTo(x(i), y(value)); context.lineTo(x(i + 1), y(value)); });
      context.stroke();
      context.globalAlpha = 1;
    }
    this.label(context, `${format.count(most)}`, top + 7, colors);
    this.label(context, all[0].name, top + height / 2 + 2, colors);
    this.label(context, '0', top + height - 6, colors);
  }
}

/// What went from place to place, as a matrix; null where nothing did.
function trafficCard(run) {
  const {places, flows} = run.traffic;
  if (flows.length === 0) return null;
  const byNode = places.length > 128;
  const nodes = [...new Set(places.map(([node]) => node))];
  const keys = byNode ? nodes.map((node) => [node, 0]) : places;
  const keyOf = (i) => (byNode ? nodes.indexOf(places[i][0]) : i);
  const sums = new Map();
  for (const [from, to, count, bytes] of flows) {
    const key = keyOf(from) * keys.length + keyOf(to);
    const sum = sums.get(key) || {count: 0, bytes: 0};
    sums.set(key, {count: sum.count + count, bytes: sum.bytes + bytes});
  }
  const hasDevices = places.some(([, place]) => place !== 0);
  const name = ([node, place]) => (byNode || !hasDevices ? `node ${node}` : `${node} ${placeName(place)}`);
  const canvas = h('canvas', {class: 'traffic'});
  const told = h('p', {class: 'note'}, 'rows send, columns receive');
  let what = 'bytes';
  const left = 92;
  const size = () => Math.max(3, Math.min(34, Math.floor(360 / keys.length)));
  const draw = () => {
    const colors = theme();
    const cell = size();
    const context = sized(canvas, left + cell * keys.length + 2, 18 + cell * keys.length + 2);
    const most = Math.max(...[...sums.values()].map((sum) => sum[what]));
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = colors.lane;
    context.fillRect(left, 18, cell * keys.length, cell * keys.length);
    for (const [key, sum] of sums) {
      const [row, column] = [Math.floor(key / keys.length), key % keys.length];
      const [r, g, b] = blend(rgb(colors.lane), rgb(colors.accent), 0.12 + 0.88 * Math.sqrt(sum[what] / most));
      context.fillStyle = `rgb(${r} ${g} ${b})`;
      context.fillRect(left + column * cell, 18 + row * cell, cell - (cell > 5 ? 1 : 0), cell - (cell > 5 ? 1 : 0));
    }
    context.fillStyle = colors.soft;
    const every = Math.ceil(13 / cell);
    keys.forEach((key, i) => {
      if (i % every !== 0) return;
      context.textAlign = 'right';
      context.textBaseline = 'middle';
      context.fillText(name(key), left - 6, 18 + (i + 0.5) * cell);
      context.textAlign = 'center';
      if (cell >= 18 || i % (4 * every) === 0) context.fillText(hasDevices && key[1] !== 0 ? `d${key[1] - 1}` : key[0], left + (i + 0.5) * cell, 9);
    });
    context.textAlign = 'left';
  };
  canvas.addEventListener('pointermove', (event) => {
    const [column, row] = [Math.floor((event.offsetX - left) / size()), Math.floor((event.offsetY - 18) / size())];
    const sum = column >= 0 && row >= 0 && column < keys.length && sums.get(row * keys.length + column);
    told.textContent = sum ? `${name(keys[row])} to ${name(keys[column])}: ${format.bytes(sum.bytes)} in ${format.count(sum.count)}` : 'rows send, columns receive';
  });
  const choice = h('span', {class: 'choice'}, ['bytes', 'count'].map((one) => h('button', {
    type: 'button', 'aria-pressed': one === what, onclick: (event) => {
      what = one;
      choice.querySelectorAll('button').forEach((button) => button.setAttribute('aria-pressed', button === event.target));
      draw();
    },
  }, one)));
  return {element: card('From place to place', choice, canvas, told), draw};
}
