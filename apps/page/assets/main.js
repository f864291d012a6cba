// Puts the page together.

/// "Cholesky, 4000 × 4000"
function runTitle(run) {
  const about = run.figures.about;
  if (!about?.factorization) return runName(run);
  const names = {cholesky: 'Cholesky', qr: 'QR'};
  return `${names[about.factorization] || about.factorization}, ${about.m} × ${about.n}`;
}
/// Tells a run apart from the others of the page.
const runName = (run) => run.figures.run.replace(/\/+$/, '').split('/').pop() || run.figures.run;

function subtitle(run) {
  const {about, nodes} = run.figures;
  const parts = [`${nodes} ${nodes === 1 ? 'node' : 'nodes'}${about?.grid ? ` (grid ${about.grid.join(' × ')})` : ''}`];
  if (about?.status && about.status !== 'ok') parts.push(`ended as ${about.status.replaceAll('_', ' ')}`);
  if (about?.cpu_workers != null) parts.push(`${about.cpu_workers} ${about.cpu_workers === 1 ? 'worker' : 'workers'} each`);
  if (about?.devices) parts.push(`${about.devices} ${about.device_backend && about.device_backend !== 'none' ? `${about.device_backend} ` : ''}${about.devices === 1 ? 'device' : 'devices'} each`);
  if (about?.tile) parts.push(`tiles of ${about.tile}`);
  if (about?.strip) parts.push(`strips of ${about.strip}`);
  if (about?.nrhs) parts.push(`${about.nrhs} right-hand ${about.nrhs === 1 ? 'side' : 'sides'}`);
  if (about?.machine) parts.push(`${about.simulated ? 'simulated on ' : ''}${about.machine}`);
  if (about?.blas_kernels) parts.push(about.blas_kernels);
  if (about?.version) parts.push(`heddle ${about.version}`);
  parts.push(`job ${run.figures.job} of ${run.figures.run}`);
  return parts.join(' · ');
}

function keyFigures(run) {
  const {figures, causes} = run;
  const sum = sumOf(figures.threads, causes);
  const bounds = boundsOf(figures).filter((bound) => bound.key !== 'products');
  const best = bounds.sort((a, b) => b.seconds - a.seconds)[0];
  const worst = causes.filter((cause) => cause !== 'end').sort((a, b) => sum.idle[b] - sum.idle[a])[0];
  const outliers = figures.kernels.reduce((total, kernel) => total + kernel.outliers, 0);
  const one = (value, label, note) => h('div', {class: 'figure'}, h('b', {}, value), h('span', {}, label), note ? h('small', {}, note) : null);
  return h('div', {class: 'figures'},
      one(format.seconds(figures.seconds), 'from first task to last'),
      figures.about?.gflops ? one(`${figures.about.gflops.toFixed(1)}`, 'GFLOP/s', figures.about.efficiency ? `${format.percent(figures.about.efficiency, 0)} of products` : null) : null,
      one(format.percent(sum.busy / Math.max(1e-12, sum.all)), 'busy', sum.idle[worst] > 0 ? `then: ${worst} ${format.percent(sum.idle[worst] / sum.all)}` : null),
      best && best.seconds > 0 ? one(format.percent(best.seconds / figures.seconds), 'of the bound reached', best.label) : null,
      one(format.count(figures.tasks), 'tasks', `${format.count(figures.dependencies)} dependencies`),
      figures.messages.count ? one(format.bytes(figures.messages.bytes), 'in messages', `${format.percent(figures.messages.hidden, 0)} hidden`) : null,
      figures.copies.count ? one(format.bytes(figures.copies.bytes), 'in copies', `${format.percent(figures.copies.hidden, 0)} hidden`) : null,
      outliers ? one(format.count(outliers), 'outliers', 'of kernels’ times') : null);
}

/// What the address says behind '#', and back.
function readState() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (key, otherwise) => (words.has(key) && Number.isFinite(Number(words.get(key))) ? Number(words.get(key)) : otherwise);
  return {
    run: words.get('run') || '0', from: number('from', 0), to: number('to', 1), task: number('task', -1),
    path: words.get('path') || '', lanes: words.get('lanes') !== '0', theme: words.get('theme') || '',
    kernel: number('kernel', -1), rowHeight: number('rows', 0),
  };
}

class RunView {
  constructor(run, start, keep) {
    this.run = run;
    const length = run.span[1] - run.span[0];
    const {tasks} = run;
    this.state = {
      t0: run.span[0] + start.from * length, t1: run.span[0] + Math.max(start.to, start.from + 1e-9) * length,
      task: start.task >= 0 && start.task < tasks.n ? start.task : -1, path: start.path, lanes: start.lanes, kernel: start.kernel,
      rowHeight: start.rowHeight,
    };
    this.keep = keep;
    this.timeline = new Timeline(run, this.state, () => this.changed());
    this.overview = new Overview(run, this.timeline);
    this.traffic = trafficCard(run);
    this.chips = h('div', {class: 'chips'});
    this.told = h('div', {class: 'told'});
    this.element = this.build();
  }

  build() {
    const {run} = this;
    const {kernels} = this.timeline;
    const notes = [...run.figures.damages.map((text) => `Not whole: ${text}.`), ...run.leftOut];
    const idle = run.working.filter((t) => run.tasks.first[t] === run.tasks.first[t + 1]).length;
    const traffic = this.traffic?.element;
    return h('div', {class: 'run'},
        notes.length ? h('ul', {class: 'notes'}, notes.map((text) => h('li', {}, text))) : null,
        keyFigures(run),
        h('section', {class: 'card timeline'}, h('h2', {}, 'Timeline', this.tools()), this.chips, this.overview.element, this.timeline.element, this.told,
            h('p', {class: 'note'}, 'Wheel zooms, drag moves, shift and wheel scrolls. Keys: ← → + − f [ ] Esc. Click a task to see what it waited for and who waited for it; double click zooms to it.',
                idle ? ` ${idle} ${idle === 1 ? 'thread' : 'threads'} that ran no task ${idle === 1 ? 'has' : 'have'} no row.` : '',
                run.counters.length === 0 ? ' The trace does not tell how many tasks were ready.' : '')),
        h('div', {class: 'grid'},
            h('div', {class: 'column'}, threadsCard(run), kernelsCard(run, kernels), transfersCard(run), groupsCard(run)),
            h('div', {class: 'column'}, boundsCard(run), pathCard('What led to the last task', run.figures.chain, run, kernels),
                pathCard('The longest chain of tasks that wait for each other', run.figures.critical_path, run, kernels), traffic)));
  }

  tools() {
    const {state, run, timeline} = this;
    const redraw = (change) => () => {
      change();
      this.changed();
    };
    const button = (text, title, action) => h('button', {type: 'button', title, onclick: action}, text);
    this.pathChoice = h('select', {title: 'highlight', onchange: redraw(() => { state.path = this.pathChoice.value; })},
        h('option', {value: ''}, 'highlight no path'),
        h('option', {value: 'longest'}, 'longest chain of tasks'),
        run.links ? h('option', {value: 'chain'}, 'what led to the last task') : null);
    this.laneChoice = h('button', {type: 'button', title: 'messages and copies', onclick: redraw(() => { state.lanes = !state.lanes; })}, 'transfers');
    return h('span', {class: 'tools'}, this.pathChoice, run.transfers ? this.laneChoice : null,
        button('−', 'zoom out', () => timeline.zoom(1.6)), button('+', 'zoom in', () => timeline.zoom(1 / 1.6)), button('fit', 'show all', () => timeline.fit()));
  }

  drawChips() {
    const {run, state, timeline} = this;
    const chip = (color, text, title, pressed, action) => h(action ? 'button' : 'span', {type: action && 'button', class: 'chip', title, 'aria-pressed': pressed, onclick: action || (() => {})},
        h('i', {class: 'key', style: `background: ${color}`}), text);
    const used = new Set(run.idle.cause);
    this.chips.replaceChildren(
        ...timeline.kernels.slice(0, 24).map((kernel, i) => chip(kernelColors[i] || restColor, run.names[kernel], 'show this kernel alone', state.kernel === kernel, () => {
          state.kernel = state.kernel === kernel ? -1 : kernel;
          this.changed();
        })),
        timeline.allRows.some((row) => row.type === 'task' && row.lane.kind.includes(254)) ? chip(restColor, 'other jobs', 'tasks of other jobs') : '',
        h('span', {class: 'chip-gap'}), chip('var(--busy)', 'busy'),
        ...run.causes.map((cause, i) => (used.has(i) || cause === 'runtime' ? chip(causeColor(run.causes, i), cause, causeTexts[cause] || '') : '')),
        ...(state.lanes && run.transfers?.messages.n ? [chip(transferColors.message, 'message received')] : []),
        ...(state.lanes && run.transfers?.copies.n ? run.copy_reasons.filter((_, i) => run.transfers.copies.reason.includes(i)).map((reason) => chip(transferColors[reason] || restColor, reason === 'copy' ? 'copy between places' : reason)) : []));
  }

  changed() {
    this.keep();
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  draw() {
    const {state, timeline} = this;
    timeline.draw();
    this.overview.draw();
    const chips = `${state.kernel} ${state.lanes}`;
    if (chips !== this.chipsDrawn) this.drawChips();
    this.chipsDrawn = chips;
    this.pathChoice.value = state.path;
    this.laneChoice.setAttribute('aria-pressed', state.lanes);
    if (this.toldOf !== state.task) {
      this.toldOf = state.task;
      this.told.replaceChildren(...(state.task >= 0 ? timeline.describeSelected(state.task) : []));
    }
  }

  /// After a change of size or of colours.
  redraw() {
    forgetTheme();
    this.chipsDrawn = null;
    this.draw();
    this.traffic?.draw();
  }
}

class PageView {
  constructor(runs, index) {
    Object.assign(this, {runs, index});
    this.start = readState();
    this.views = new Map();
    this.applyTheme(this.start.theme);
    this.tabs = runs.length > 1 ? h('nav', {class: 'tabs'},
        [...runs.map((run, i) => [String(i), runName(run)]), ['compare', 'side by side']].map(([key, text]) => (
          h('button', {type: 'button', 'data-run': key, onclick: () => this.show(key)}, text)))) : null;
    this.head = h('div', {class: 'head'});
    document.getElementById('header').append(this.head, h('button', {type: 'button', class: 'theme', title: 'light or dark', onclick: () => {
      this.applyTheme(getComputedStyle(document.documentElement).colorScheme === 'dark' || (this.theme === '' && matchMedia('(prefers-color-scheme: dark)').matches) ? 'light' : 'dark');
      this.keep();
      this.current?.redraw?.();
    }}, '◐'));
    if (this.tabs) document.getElementById('header').after(this.tabs);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.current?.redraw?.());
    new ResizeObserver(() => this.current?.redraw?.()).observe(document.getElementById('main'));
  }

  applyTheme(theme) {
    this.theme = theme;
    document.documentElement.style.colorScheme = theme || 'light dark';
  }

  show(key) {
    const valid = key === 'compare' && this.runs.length > 1 ? key : this.runs[Number(key)] ? key : '0';
    this.key = valid;
    this.tabs?.querySelectorAll('button').forEach((button) => button.setAttribute('aria-current', button.dataset.run === valid));
    const main = document.getElementById('main');
    const run = this.runs[Number(valid)];
    const names = this.runs.map((one) => runName(one)).join(', ');
    this.head.replaceChildren(h('h1', {}, run ? runTitle(run) : 'Runs side by side'), h('p', {}, run ? subtitle(run) : names));
    document.title = `${run ? `${runTitle(run)} – ${runName(run)}` : names} – heddle`;
    if (!run) {
      this.current = null;
      main.replaceChildren(timesCard(this.runs), comparison(this.runs));
      this.keep();
      return;
    }
    if (!this.views.has(valid)) this.views.set(valid, new RunView(run, this.start, () => this.keep()));
    this.start = {...this.start, from: 0, to: 1, task: -1, kernel: -1};  // meant for the first one
    this.current = this.views.get(valid);
    main.replaceChildren(this.current.element);
    this.current.redraw();
    this.keep();
  }

  /// Puts into the address what is shown, so that it can be passed on.
  keep() {
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => {
      const words = new URLSearchParams();
      if (this.key !== '0') words.set('run', this.key);
      if (this.theme) words.set('theme', this.theme);
      const view = this.current;
      if (view) {
        const {state, run} = view;
        const share = (time) => ((time - run.span[0]) / (run.span[1] - run.span[0])).toPrecision(9).replace(/\.?0+$/, '');
        if (state.t0 !== run.span[0]) words.set('from', share(state.t0));
        if (state.t1 !== run.span[1]) words.set('to', share(state.t1));
        if (state.task >= 0) words.set('task', state.task);
        if (state.path) words.set('path', state.path);
        if (!state.lanes) words.set('lanes', '0');
        if (state.kernel >= 0) words.set('kernel', state.kernel);
        if (state.rowHeight) words.set('rows', state.rowHeight);
      }
      history.replaceState(null, '', `#${words}`);
    }, 250);
  }
}

async function start() {
  const index = JSON.parse(document.getElementById('index').textContent);
  const runs = [];
  for (let i = 0; i < index.runs.length; ++i) {
    const run = await decodeRun(i, index.runs[i]);
    run.nodes_shown = new Set(run.threads.map((thread) => thread.node)).size;
    runs.push(run);
  }
  const page = new PageView(runs, index);
  page.show(page.start.run);
  const told = {runs: runs.map(decodedFigures)};
  document.getElementById('decoded').textContent = JSON.stringify(told);
  document.body.dataset.ready = 'yes';
  globalThis.heddlePage = page;  // for the browser's console
  // Before somebody asks: it takes a moment.
  const later = globalThis.requestIdleCallback || ((work) => setTimeout(work, 200));
  for (const run of runs) later(() => run.links?.prepare());
}

start().catch((error) => {
  document.getElementById('main').replaceChildren(h('p', {class: 'state'}, `This page cannot be shown: ${error.message}. It needs a browser of 2024 or later.`));
  throw error;
});
