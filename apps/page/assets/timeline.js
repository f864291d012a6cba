// The timeline: rows of threads, streams, messages and copies over time.

const GUTTER = 132;
const RULER = 40;
const heightMax = () => Math.max(420, Math.min(1000, Math.round(innerHeight * 0.62)));

/// Rows of a run, from top to bottom.
function rowsOf(run, kernels) {
  const kinds = new Uint8Array(run.names.length).fill(254);
  kernels.forEach((kernel, i) => { if (i < 200) kinds[kernel] = i; });
  const moving = {message: 200};
  run.copy_reasons.forEach((reason, i) => { moving[reason] = 201 + i; });
  const rows = [];
  const nodes = [...new Set(run.threads.map((thread) => thread.node))];
  const byNode = (transfers, key) => {
    const lists = new Map(nodes.map((node) => [node, []]));
    for (let i = 0; transfers && i < transfers.n; ++i) lists.get(transfers[key][i])?.push(i);
    return lists;
  };
  const messages = byNode(run.transfers?.messages, 'to');
  const copies = byNode(run.transfers?.copies, 'node');
  for (const node of nodes) {
    let isFirst = true;
    const add = (row) => {
      rows.push({node, isFirst, ...row});
      isFirst = false;
    };
    for (const t of run.working) {
      if (run.threads[t].node !== node || run.tasks.first[t] === run.tasks.first[t + 1]) continue;
      const lanes = taskLanes(run, t, kinds);
      // What no cause is known of was the runtime's, where one lane tells when its thread was busy.
      const rest = lanes.length === 1 && !run.tasks.idle ? run.causes.indexOf('runtime') : -1;
      lanes.forEach((lane, stream) => add({
        type: 'task', thread: t, lane, rest, idle: stream === 0 ? idleLane(run, t) : null, label: stream === 0 ? run.threads[t].name : '',
      }));
    }
    const addTransfers = (type, all, ids, kind) => {
      if (!ids.length) return;
      const lanes = apart(ids.length, (i) => all.start[ids[i]], (i) => all.end[ids[i]], 4);
      lanes.forEach((list, k) => add({
        type, label: k === 0 ? type + 's' : '',
        lane: laneOf(list.map((i) => ids[i]), (i) => all.start[i], (i) => all.end[i], kind),
      }));
    };
    addTransfers('copy', run.transfers?.copies, copies.get(node), (i) => moving[run.copy_reasons[run.transfers.copies.reason[i]]]);
    addTransfers('message', run.transfers?.messages, messages.get(node), () => moving.message);
  }
  for (const row of rows) if (row.label === 'copys') row.label = 'copies';
  return rows;
}

class Timeline {
  constructor(run, state, changed) {
    Object.assign(this, {run, state, changed, hover: null, scroll: 0, frames: []});
    this.kernels = kernelOrder(run);
    this.allRows = rowsOf(run, this.kernels);
    this.bounds = boundsOf(run.figures);
    this.canvas = h('canvas', {tabindex: 0, class: 'gantt', 'aria-label': 'Timeline of threads; arrow keys move, plus and minus zoom'});
    this.overlay = h('div', {class: 'gantt-box'}, this.canvas);
    this.element = this.overlay;
    this.listen();
  }

  // ---- layout ----------------------------------------------------------------------------------

  layout() {
    const {state} = this;
    this.width = Math.max(200, this.overlay.clientWidth);
    this.plot = this.width - GUTTER;
    this.rows = this.allRows.filter((row) => row.type === 'task' || state.lanes);
    const tasks = this.rows.filter((row) => row.type === 'task').length;
    const nodes = this.rows.filter((row) => row.isFirst).length;
    const most = heightMax();
    const room = most - RULER - 6 * nodes;
    const small = this.rows.length - tasks;
    this.rowHeight = state.rowHeight || Math.max(2, Math.min(26, Math.floor(room / (tasks + 0.4 * small))));
    let y = 0;
    for (const row of this.rows) {
      if (row.isFirst && y > 0) y += this.rowHeight > 4 ? 6 : 3;
      row.y = y;
      row.height = row.type === 'task' ? this.rowHeight : Math.max(2, Math.round(this.rowHeight * 0.4));
      y += row.height + (this.rowHeight > 6 ? 1 : 0);
    }
    this.total = y;
    this.height = Math.min(most, RULER + y + 4);
    this.scroll = Math.max(0, Math.min(this.scroll, RULER + y + 4 - this.height));
  }

  x(time) { return GUTTER + (time - this.state.t0) / (this.state.t1 - this.state.t0) * this.plot; }
  time(x) { return this.state.t0 + (x - GUTTER) / this.plot * (this.state.t1 - this.state.t0); }
  rowY(row) { return RULER + row.y - this.scroll; }

  // ---- drawing ---------------------------------------------------------------------------------

  draw() {
    const begun = performance.now();
    this.layout();
    const context = sized(this.canvas, this.width, this.height);
    this.colors = theme();
    const shown = this.rows.filter((row) => this.rowY(row) < this.height && this.rowY(row) + row.height > RULER);
    this.drawRows(context, shown);
    this.drawLabels(context, shown);
    this.drawRuler(context);
    this.drawBounds(context);
    const path = this.pathShown();
    if (path) this.drawPath(context, path);
    if (this.state.task >= 0) this.drawLinks(context, this.state.task);
    this.drawGutter(context, shown);
    this.frames.push(performance.now() - begun);
    if (this.frames.length > 1000) this.frames.shift();
  }

  /// The pixels of kinds and causes by cover, 0 to 32, on `ground`: that of a kind k is at k * 33 + cover.
  palette(ground) {
    const {run, state} = this;
    const key = `${ground} ${state.kernel}`;
    if (this.paletteKey === key) return this.paletteNow;
    const put = (to, at, hex, strength = 1) => {
      for (let i = 0; i <= 32; ++i) to[at * 33 + i] = pixel(blend(rgb(ground), rgb(hex), strength * i / 32));
    };
    const kinds = new Uint32Array(256 * 33);
    for (let k = 0; k < 256; ++k) put(kinds, k, restColor);
    this.kernels.forEach((kernel, i) => {
      if (i < 200) put(kinds, i, kernelColors[i] || restColor, state.kernel >= 0 && state.kernel !== kernel ? 0.15 : 1);
    });
    put(kinds, 200, transferColors.message);
    run.copy_reasons.forEach((reason, i) => put(kinds, 201 + i, transferColors[reason] || restColor));
    const causes = new Uint32Array(256 * 33).fill(pixel(rgb(ground)));
    run.causes.forEach((cause, i) => put(causes, i, causeColor(run.causes, i, this.colors), cause === 'end' ? 1 : 0.75));
    this.paletteKey = key;
    return this.paletteNow = {kinds, causes, ground: pixel(rgb(ground))};
  }

  drawRows(context, shown) {
    const ratio = this.canvas.width / this.width;
    const [width, height] = [Math.round(this.plot * ratio), Math.round((this.height - RULER) * ratio)];
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const palette = this.palette(this.colors.lane);
    const perPixel = (this.state.t1 - this.state.t0) / width;
    const kinds = new Uint8Array(width);
    const covers = new Float32Array(width);
    const line = new Uint32Array(width);
    const strip = new Uint32Array(width);
    for (const row of shown) {
      strip.fill(palette.ground);
      line.fill(palette.ground);
      if (row.idle) {
        if (row.rest >= 0) strip.fill(palette.causes[row.rest * 33 + 32], ...this.columns(width));
        row.idle.sample(this.state.t0, perPixel, width, kinds, covers);
        for (let x = 0; x < width; ++x) if (kinds[x] !== 255) strip[x] = palette.causes[kinds[x] * 33 + ((covers[x] * 32) | 0)];
      }
      row.isDense = row.lane.sample(this.state.t0, perPixel, width, kinds, covers);
      for (let x = 0; x < width; ++x) {
        if (kinds[x] === 255) continue;
        const share = (covers[x] * 31.99 + 0.99) | 0;
        line[x] = palette.kinds[kinds[x] * 33 + share];
        if (share >= 16 || !row.idle) strip[x] = line[x];
      }
      const top = Math.round((this.rowY(row) - RULER) * ratio);
      const lines = Math.max(1, Math.round(row.height * ratio));
      // Causes are a thin strip in the middle of the row, or all of a low one.
      const inset = row.idle && row.height >= 8 ? Math.round(lines * 0.36) : 0;
      for (let y = 0; y < lines; ++y) {
        const at = top + y;
        if (at >= 0 && at < height) pixels.set(row.idle && y >= inset && y < lines - inset ? strip : line, at * width);
      }
    }
    context.putImageData(image, Math.round(GUTTER * ratio), Math.round(RULER * ratio));
  }

  /// Kernel and tile in tasks that have room for them.
  drawLabels(context, shown) {
    if (this.rowHeight < 13) return;
    const {run, state} = this;
    const perPixel = (state.t1 - state.t0) / this.plot;
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const letter = 6.4;  // wider than most: asking for each text's width would take longer than drawing it
    let left = 1500;
    for (const row of shown) {
      if (row.type !== 'task' || row.isDense) continue;
      for (let i = Math.max(0, lowerBound(row.lane.start, state.t0) - 1); i < row.lane.n && row.lane.start[i] < state.t1; ++i) {
        const [x0, x1] = [Math.max(GUTTER, this.x(row.lane.start[i])), Math.min(this.width, this.x(row.lane.end[i]))];
        if (row.lane.end[i] - row.lane.start[i] < 34 * perPixel || x1 - x0 < 34) continue;
        if (--left < 0) return;
        const task = row.lane.id(i);
        const name = run.names[run.tasks.kernel[task]];
        const tile = run.details ? tileName(run, run.details.matrix[task], run.details.tile[task]).replace(/^.*?(?=\()/, '') : '';
        const text = [`${name} ${tile}`, name].find((one) => one.length * letter < x1 - x0 - 6);
        if (!text) continue;
        const [r, g, b] = rgb(kernelColors[row.lane.kind[i]] || restColor);
        context.fillStyle = 0.3 * r + 0.59 * g + 0.11 * b > 140 ? '#111' : '#fff';
        context.fillText(text, x0 + 4, this.rowY(row) + row.height / 2 + 0.5);
      }
    }
  }

  drawRuler(context) {
    const {colors, run, state} = this;
    context.fillStyle = colors.card;
    context.fillRect(0, 0, this.width, RULER);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'alphabetic';
    const origin = run.span[0];
    const {step, all} = ticks((state.t0 - origin) * 1e-9, (state.t1 - origin) * 1e-9, this.plot / 110);
    const unit = [['s', 1], ['ms', 1e-3], ['µs', 1e-6], ['ns', 1e-9]].find(([, size]) => step >= size * 0.0999 || size === 1e-9);
    const digits = Math.max(0, -Math.floor(Math.log10(step / unit[1]) + 1e-9));
    for (const time of all) {
      const x = this.x(time * 1e9 + origin);
      context.fillStyle = colors.line;
      context.globalAlpha = 0.3;
      context.fillRect(Math.round(x), RULER, 1, this.height);
      context.globalAlpha = 1;
      context.fillRect(Math.round(x), RULER - 6, 1, 6);
      context.fillStyle = colors.soft;
      const text = `${(time / unit[1]).toFixed(digits)}${thin}${unit[0]}`;
      if (x + 4 + context.measureText(text).width < this.width) context.fillText(text, x + 4, RULER - 6);
    }
    context.fillStyle = colors.line;
    context.fillRect(GUTTER, RULER - 1, this.plot, 1);
  }

  /// Where the run would have ended at the earliest, by each bound.
  drawBounds(context) {
    const {colors, run} = this;
    context.font = '11px system-ui, sans-serif';
    const lines = this.bounds.filter((bound) => bound.seconds > 0)
        .map((bound) => ({...bound, x: this.x(run.span[0] + bound.seconds * 1e9)}))
        .filter((bound) => bound.x >= GUTTER && bound.x <= this.width).sort((a, b) => a.x - b.x);
    const labels = [];
    for (const {x, short} of lines) {
      context.strokeStyle = context.fillStyle = colors.accent;
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(Math.round(x) + 0.5, 16);
      context.lineTo(Math.round(x) + 0.5, this.height);
      context.stroke();
      context.setLineDash([]);
      const last = labels.at(-1);
      if (last && x - last.x < 6) {
        last.text += `, ${short}`;
      } else {
        labels.push({x, text: short});
      }
    }
    let limit = this.width - 2;
    for (const {x, text} of labels.reverse()) {
      const wide = context.measureText(text).width;
      const left = Math.min(limit - wide, x - wide / 2);
      if (left < GUTTER) continue;
      context.fillText(text, left, 12);
      limit = left - 12;
    }
  }

  drawGutter(context, shown) {
    const {colors, run} = this;
    context.fillStyle = colors.card;
    context.fillRect(0, RULER, GUTTER - 1, this.height);
    context.save();
    context.beginPath();
    context.rect(0, RULER, this.width, this.height);
    context.clip();
    context.textBaseline = 'middle';
    const many = run.nodes_shown > 1;
    let labelled = -100;
    for (const row of shown) {
      const middle = this.rowY(row) + (row.type === 'task' ? row.height / 2 + 0.5 : Math.max(7, row.height / 2));
      if (row.isFirst && many && middle - labelled >= 12) {
        context.font = '600 11px system-ui, sans-serif';
        context.fillStyle = colors.ink;
        context.fillText(`node ${row.node}`, 2, Math.max(middle, RULER + 7));
        labelled = middle;
      }
      if (row.label && row.height >= (row.type === 'task' ? 10 : 5)) {
        context.font = `${row.type === 'task' ? 11 : 10}px system-ui, sans-serif`;
        context.fillStyle = colors.soft;
        context.textAlign = 'right';
        context.fillText(row.label, GUTTER - 10, middle);
        context.textAlign = 'left';
      }
    }
    if (this.total + RULER + 4 > this.height) {
      const room = this.height - RULER;
      context.fillStyle = colors.faint;
      context.fillRect(GUTTER - 6, RULER + room * this.scroll / this.total, 4, Math.max(12, room * room / this.total));
    }
    context.restore();
  }

  /// The pixel columns that are of the job's time.
  columns(width) {
    const {run, state} = this;
    return run.span.map((time) => Math.max(0, Math.min(width, Math.round((time - state.t0) / (state.t1 - state.t0) * width))));
  }

  // ---- what belongs together -------------------------------------------------------------------

  pathShown() {
    const {run, state} = this;
    if (state.path === 'longest') return this.longest ??= run.path.map(([t, start, ns]) => ({t, start, end: start + ns}));
    if (state.path !== 'chain' || !run.links) return null;
    return this.chain ??= run.links.chain(run.job).map((i) => (
      {t: run.tasks.thread[i], start: run.tasks.start[i], end: run.tasks.end[i]}));
  }

  /// A task's row, if it has one.
  rowOf(t, start) {
    this.byThread ??= Map.groupBy ? Map.groupBy(this.allRows.filter((row) => row.type === 'task'), (row) => row.thread) : null;
    const rows = this.byThread ? this.byThread.get(t) || [] : this.allRows.filter((row) => row.type === 'task' && row.thread === t);
    if (rows.length < 2) return rows[0];
    return rows.find((row) => row.lane.start[lowerBound(row.lane.start, start)] === start) || rows[0];
  }

  dim(context) {
    context.save();
    context.globalAlpha = 0.62;
    context.fillStyle = this.colors.lane;
    context.fillRect(GUTTER, RULER, this.plot, this.height - RULER);
    context.restore();
  }

  /// A task as it is, above what was dimmed.
  drawTask(context, row, start, end, outline) {
    const i = lowerBound(row.lane.start, start);
    const [x0, x1] = [Math.max(GUTTER, this.x(start)), Math.min(this.width, this.x(end))];
    if (x1 < GUTTER || x0 > this.width) return;
    context.fillStyle = kernelColors[row.lane.kind[i]] || restColor;
    context.fillRect(x0, this.rowY(row), Math.max(1.5, x1 - x0), row.height);
    if (!outline) return;
    context.strokeStyle = outline;
    context.lineWidth = 1.5;
    context.strokeRect(x0 - 0.5, this.rowY(row) - 0.5, Math.max(2.5, x1 - x0 + 1), row.height + 1);
    context.lineWidth = 1;
  }

  clipped(context, draw) {
    context.save();
    context.beginPath();
    context.rect(GUTTER, RULER, this.plot, this.height - RULER);
    context.clip();
    draw();
    context.restore();
  }

  drawPath(context, path) {
    const {colors, state} = this;
    this.clipped(context, () => {
      this.dim(context);
      const perPixel = (state.t1 - state.t0) / this.plot;
      const points = [];
      let last = {x: -9, row: null};
      for (const {t, start, end} of path) {
        if (end < state.t0 || start > state.t1) {
          if (start > state.t1) break;
          continue;
        }
        const x = Math.round(start / perPixel);
        const row = this.rowOf(t, start);
        if (!row || (x === last.x && row === last.row)) continue;
        last = {x, row};
        this.drawTask(context, row, start, end);
        const y = this.rowY(row) + row.height / 2;
        points.push([this.x(start), y], [this.x(end), y]);
      }
      context.strokeStyle = colors.ink;
      context.lineWidth = 1.25;
      context.beginPath();
      points.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
      context.stroke();
      context.lineWidth = 1;
    });
  }

  drawLinks(context, task) {
    const {colors, run} = this;
    const {tasks} = run;
    this.linked ??= {task: -1};
    if (this.linked.task !== task) {
      this.linked = {task, before: run.links?.before(task) || [], after: run.links?.after(task) || []};
    }
    const {before, after} = this.linked;
    this.clipped(context, () => {
      this.dim(context);
      const at = (i) => this.rowOf(tasks.thread[i], tasks.start[i]);
      const arrow = (from, to, color) => {
        const [a, b] = [at(from), at(to)];
        if (!a || !b) return;
        const [x0, x1] = [this.x(tasks.end[from]), this.x(tasks.start[to])];
        const [y0, y1] = [this.rowY(a) + a.height / 2, this.rowY(b) + b.height / 2];
        const bend = Math.max(12, Math.abs(x1 - x0) / 2);
        context.strokeStyle = color;
        context.globalAlpha = 0.7;
        context.beginPath();
        context.moveTo(x0, y0);
        context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
        context.stroke();
        context.globalAlpha = 1;
      };
      for (const one of after) {
        if (at(one)) this.drawTask(context, at(one), tasks.start[one], tasks.end[one], colors.soft);
      }
      for (const one of before) {
        if (at(one)) this.drawTask(context, at(one), tasks.start[one], tasks.end[one], colors.accent);
      }
      for (const one of after.slice(0, 400)) arrow(task, one, colors.soft);
      for (const one of before) arrow(one, task, colors.accent);
      if (at(task)) this.drawTask(context, at(task), tasks.start[task], tasks.end[task], colors.ink);
    });
  }
}
