// How the timeline answers: wheel, mouse, keys, and what it tells of what is under the pointer.

Object.assign(Timeline.prototype, {
  listen() {
    const {canvas} = this;
    canvas.addEventListener('wheel', (event) => this.wheel(event), {passive: false});
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointerleave', () => this.tell(null));
    canvas.addEventListener('dblclick', (event) => this.zoomTo(this.at(event)));
    canvas.addEventListener('keydown', (event) => this.key(event));
  },

  limits() { return [Math.min(0, this.run.span[0]), Math.max(this.run.end, this.run.span[1])]; },

  show(t0, t1) {
    const [least, most] = this.limits();
    const length = Math.max(20, Math.min(t1 - t0, (most - least) * 1.04));
    const margin = 0.02 * (most - least);
    this.state.t0 = Math.max(least - margin, Math.min(t0, most + margin - length));
    this.state.t1 = this.state.t0 + length;
    this.changed();
  },
  fit() { this.show(this.run.span[0], this.run.span[1]); },
  zoom(factor, x = GUTTER + this.plot / 2) {
    const time = this.time(x);
    this.show(time - (time - this.state.t0) * factor, time + (this.state.t1 - time) * factor);
  },
  pan(share) {
    const by = share * (this.state.t1 - this.state.t0);
    this.show(this.state.t0 + by, this.state.t1 + by);
  },
  scrollBy(y) {
    this.scroll += y;
    this.changed();
  },

  wheel(event) {
    event.preventDefault();
    const [dx, dy] = [event.deltaX, event.deltaY].map((one) => one * (event.deltaMode === 1 ? 16 : 1));
    if (event.shiftKey) this.scrollBy(dy || dx);
    else if (Math.abs(dx) > Math.abs(dy)) this.pan(dx / this.plot);
    else this.zoom(Math.exp(Math.max(-120, Math.min(120, dy)) * 0.004), Math.max(GUTTER, event.offsetX));
  },

  press(event) {
    this.canvas.focus({preventScroll: true});
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = {x: event.offsetX, y: event.offsetY, t0: this.state.t0, t1: this.state.t1, scroll: this.scroll, moved: false};
  },
  move(event) {
    if (!this.drag) return this.tell(this.at(event), event);
    const [dx, dy] = [event.offsetX - this.drag.x, event.offsetY - this.drag.y];
    if (Math.abs(dx) + Math.abs(dy) > 3) this.drag.moved = true;
    if (!this.drag.moved) return undefined;
    this.tell(null);
    this.scroll = this.drag.scroll - dy;
    const by = -dx / this.plot * (this.drag.t1 - this.drag.t0);
    return this.show(this.drag.t0 + by, this.drag.t1 + by);
  },
  release(event) {
    const moved = this.drag?.moved;
    this.drag = null;
    if (moved) return;
    const found = this.at(event);
    this.select(found?.row.type === 'task' && found.item >= 0 ? found.row.lane.id(found.item) : -1);
  },
  select(task) {
    this.state.task = task;
    this.changed();
  },
  /// The same, and moves to where it is.
  goTo(task) {
    const {tasks} = this.run;
    const half = (this.state.t1 - this.state.t0) / 2;
    const middle = (tasks.start[task] + tasks.end[task]) / 2;
    this.state.task = task;
    const row = this.rowOf(tasks.thread[task], tasks.start[task]);
    if (row && (this.rowY(row) < RULER || this.rowY(row) + row.height > this.height)) this.scroll = row.y - this.height / 2;
    if (tasks.start[task] > this.state.t0 && tasks.end[task] < this.state.t1) this.changed();
    else this.show(middle - half, middle + half);
  },
  zoomTo(found) {
    if (!found || found.item < 0) return;
    const [start, end] = [found.row.lane.start[found.item], found.row.lane.end[found.item]];
    this.show(start - 4 * (end - start), end + 4 * (end - start));
  },

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 0.5 : 0.1;
    const rows = (by) => {
      this.state.rowHeight = Math.max(2, Math.min(48, this.rowHeight + by));
      this.changed();
    };
    const actions = {
      ArrowLeft: () => this.pan(-step), ArrowRight: () => this.pan(step), a: () => this.pan(-step), d: () => this.pan(step),
      ArrowUp: () => this.scrollBy(-40), ArrowDown: () => this.scrollBy(40),
      '+': () => this.zoom(0.7), '=': () => this.zoom(0.7), w: () => this.zoom(0.7), '-': () => this.zoom(1.4), s: () => this.zoom(1.4),
      f: () => this.fit(), 0: () => this.fit(), Home: () => this.fit(),
      '[': () => rows(-1), ']': () => rows(1), Escape: () => this.select(-1),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  },

  /// What is under the pointer: a row, an item of it or -1, the time.
  at(event) {
    if (event.offsetX < GUTTER || event.offsetY < RULER || !this.rows) return null;
    const row = this.rows.find((one) => event.offsetY >= this.rowY(one) && event.offsetY <= this.rowY(one) + one.height + 1);
    if (!row) return null;
    const time = this.time(event.offsetX);
    return {row, time, item: row.lane.find(time, 2 * (this.state.t1 - this.state.t0) / this.plot)};
  },

  tell(found, event) {
    const tip = document.getElementById('tip');
    const content = found && (found.item >= 0 ? this.describe(found.row, found.row.lane.id(found.item)) : this.describeGap(found));
    tip.hidden = !content;
    if (!content) return;
    tip.replaceChildren(...content);
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
  },

  describe(row, i) {
    if (row.type === 'task') return this.describeTask(i);
    const {run} = this;
    const isMessage = row.type === 'message';
    const all = isMessage ? run.transfers.messages : run.transfers.copies;
    const ends = isMessage ? [`node ${all.from[i]}`, `node ${all.to[i]}`] : [placeName(all.from[i]), placeName(all.to[i])];
    const ns = all.end[i] - all.start[i];
    const path = isMessage && new Map(run.path_names).get(all.path[i]);
    return [
      h('b', {}, `${row.type} of ${tileName(run, all.matrix[i], all.tile[i]) || 'data'}`),
      facts([
        ['from', ends[0]], ['to', ends[1]], isMessage ? ['way', path] : ['node', all.node[i]],
        isMessage ? null : ['why', run.copy_reasons[all.reason[i]]],
        ['version', all.version[i] >= 0 ? all.version[i] : null], ['bytes', format.bytes(all.bytes[i])],
        ['begin', format.ns(all.start[i] - run.span[0])], ['took', `${format.ns(ns)}, ${(all.bytes[i] / Math.max(1, ns)).toFixed(2)}${thin}GB/s`],
      ]),
    ];
  },

  describeTask(i) {
    const {run} = this;
    const {tasks, details, links} = run;
    const name = run.names[tasks.kernel[i]];
    const ns = tasks.end[i] - tasks.start[i];
    const lines = [
      ['thread', threadName(run, tasks.thread[i]) + (tasks.stream[i] > 0 ? `, stream ${tasks.stream[i] - 1}` : '')],
      ['begin', format.ns(tasks.start[i] - run.span[0])],
      ['took', format.ns(ns) + againstMedian(run, i, ns)],
    ];
    if (tasks.count[i] > 1) {
      return [h('b', {}, `${format.count(tasks.count[i])} tasks, mostly ${name}`), facts(lines)];
    }
    if (details) {
      lines.push(['order', format.count(details.order[i])], ['priority', details.priority[i]],
                 ['job', details.job[i] === run.job ? null : details.job[i]]);
    }
    const gap = this.gapBefore(i);
    if (gap.length > 0) lines.push(['idle before', gap.join(', ')]);
    if (links) {
      const last = links.lastBefore(i);
      lines.push(['waited for', last < 0 ? 'nothing' : this.taskName(last)]);
      if (last >= 0) lines.push(['', `${threadName(run, tasks.thread[last])}, over ${format.ns(tasks.start[i] - tasks.end[last])} before`]);
    }
    return [h('b', {}, this.taskName(i)), facts(lines)];
  },

  /// What is told of the selected task below the timeline.
  describeSelected(i) {
    const {links} = this.run;
    const list = (title, all) => (all.length === 0 ? null : h('p', {}, h('span', {class: 'soft'}, `${title} `),
        all.slice(0, 12).map((one) => h('button', {type: 'button', onclick: () => this.goTo(one)}, this.taskName(one))),
        all.length > 12 ? ` and ${format.count(all.length - 12)} more` : null));
    return [...this.describeTask(i), links && list('reads what was made by', links.before(i)), links && list('read by', links.after(i))].filter(Boolean);
  },

  taskName(i) {
    const {run} = this;
    const tile = run.details ? tileName(run, run.details.matrix[i], run.details.tile[i]) : '';
    return `${run.names[run.tasks.kernel[i]]} ${tile}`;
  },

  /// Why nothing ran on its thread before a task.
  gapBefore(i) {
    const {tasks, idle, causes, threads} = this.run;
    const t = tasks.thread[i];
    if (threads[t].role !== 'worker') return [];
    const from = i > tasks.first[t] ? tasks.end[i - 1] : this.run.span[0];
    let rest = tasks.start[i] - from;
    const parts = [];
    for (let k = lowerBound(idle.start, from, idle.first[t], idle.first[t + 1]); k < idle.first[t + 1] && idle.end[k] <= tasks.start[i]; ++k) {
      parts.push(`${causes[idle.cause[k]]} ${format.ns(idle.end[k] - idle.start[k])}`);
      rest -= idle.end[k] - idle.start[k];
    }
    if (rest > 0 && causes.includes('runtime')) parts.push(`runtime ${format.ns(rest)}`);
    return parts;
  },

  describeGap({row, time}) {
    if (row.type !== 'task' || !row.idle) return null;
    const {run} = this;
    if (time < run.span[0] || time > run.span[1]) return null;
    const k = row.idle.find(time, 0.5);
    const cause = k >= 0 ? run.causes[row.idle.kind[k]] : 'runtime';
    const long = k >= 0 ? format.ns(row.idle.end[k] - row.idle.start[k]) : null;
    return [h('b', {}, 'idle'), facts([['thread', threadName(run, row.thread)], ['cause', cause], ['for', long],
      ['', causeTexts[cause]]])];
  },
});

function facts(lines) {
  return h('dl', {}, lines.filter((line) => line && line[1] != null && line[1] !== '').map(([key, value]) => [h('dt', {}, key), h('dd', {}, String(value))]));
}

/// ", 1.3 x its median"
function againstMedian(run, i, ns) {
  const role = run.threads[run.tasks.thread[i]].role;
  const kernel = run.figures.kernels.find((one) => one.kernel === run.names[run.tasks.kernel[i]] && one.role === role);
  if (!kernel || kernel.median_us <= 0 || run.tasks.count[i] > 1) return '';
  return `, ${(ns * 1e-3 / kernel.median_us).toFixed(2)} × the median`;
}

const causeTexts = {
  'task here': 'a task before the next one was not over, on this node',
  'task there': 'a task before the next one was not over, on another node',
  message: 'the next task’s data was on its way from another node',
  copy: 'the next task’s data was on its way from another place of the node',
  runtime: 'all was there: the runtime’s time, or another task was chosen before',
  end: 'ran no task any more',
};
