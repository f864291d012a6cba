// The figures of `heddle analyze --report` as tables.

function card(title, extra, ...content) {
  return h('section', {class: 'card'}, h('h2', {}, title, extra), content);
}

/// `columns`: [title, class]; rows of cells, texts or elements.
function table(columns, rows, attributes = {}) {
  return h('div', {class: 'scroll'}, h('table', attributes,
      h('thead', {}, h('tr', {}, columns.map(([title, kind]) => h('th', {class: kind}, title)))),
      h('tbody', {}, rows.map((cells) => h('tr', {class: cells.kind}, cells.map((cell, i) => h('td', {class: columns[i][1]}, cell)))))));
}

const boundTexts = {
  area: ['area: all workers and devices always busy', 'area'],
  placed: ['placed: likewise, tasks where they were', 'placed'],
  critical_path: ['critical path: tasks that wait for each other', 'critical path'],
  mixed: ['mixed: both', 'mixed'],
  products: ['products at the rate measured for them', 'products'],
};

/// Bounds of a run, whichever its figures have, the least first.
function boundsOf(figures) {
  return Object.entries(figures.bounds || {}).filter(([, seconds]) => typeof seconds === 'number').map(([key, seconds]) => {
    const [label, short] = boundTexts[key] || [key.replaceAll('_', ' '), key.replaceAll('_', ' ')];
    return {key, label, short, seconds};
  });
}

function boundsCard(run) {
  const {figures} = run;
  const bar = (share) => h('span', {class: 'bar'}, h('i', {style: `width: ${Math.min(100, 100 * share)}%`}));
  const rows = [{label: 'this run', seconds: figures.seconds}, ...boundsOf(figures)].map(({label, seconds}) => [
    label, format.seconds(seconds), bar(seconds / figures.seconds), format.percent(seconds / figures.seconds)]);
  return card('Bounds', null, table([['no schedule of these tasks is shorter than', ''], ['', 'n'], ['', 'wide'], ['of this run', 'n']], rows));
}

/// Busy and idle time of one or several threads.
function sumOf(threads, causes) {
  const sum = {busy: 0, tasks: 0, idle: Object.fromEntries(causes.map((cause) => [cause, 0]))};
  for (const thread of threads) {
    sum.busy += thread.busy;
    sum.tasks += thread.tasks;
    for (const cause of causes) sum.idle[cause] += thread.idle[cause] || 0;
  }
  sum.all = sum.busy + causes.reduce((total, cause) => total + sum.idle[cause], 0);
  return sum;
}

const THREADS_MAX = 64;

function threadsCard(run) {
  const {threads} = run.figures;
  const {causes} = run;
  const isZero = (share) => share < 0.0005;
  // Causes that no thread had need no column.
  const total = sumOf(threads, causes);
  const told = causes.filter((cause) => threads.some((thread) => !isZero((thread.idle[cause] || 0) * threads.length / total.all)));
  const row = (label, sum) => {
    const share = (value) => (sum.all > 0 ? value / sum.all : 0);
    const parts = [['busy', sum.busy, 'var(--busy)'], ...causes.map((cause, i) => [cause, sum.idle[cause], causeColor(causes, i)])];
    const bar = h('span', {class: 'stack'}, parts.filter(([, value]) => share(value) > 0.002).map(([name, value, color]) => (
      h('i', {style: `width: ${100 * share(value)}%; background: ${color}`, title: `${name} ${format.percent(share(value))}, ${format.seconds(value)}`}))));
    const number = (value) => h('span', {class: isZero(share(value)) ? 'zero' : ''}, (100 * share(value)).toFixed(1));
    return [label, bar, number(sum.busy), ...told.map((cause) => number(sum.idle[cause])), format.count(sum.tasks)];
  };
  let groups = threads.map((thread) => [`node ${thread.node} ${thread.name}`, [thread]]);
  if (threads.length > THREADS_MAX) {
    const byNode = new Map();
    for (const thread of threads) {
      const key = `node ${thread.node} ${thread.role}s`;
      byNode.set(key, [...(byNode.get(key) || []), thread]);
    }
    groups = [...byNode].map(([key, list]) => [`${key} (${list.length})`, list]);
  }
  const rows = groups.map(([label, list]) => row(label, sumOf(list, causes)));
  const all = row('all', total);
  all.kind = 'sum';
  if (threads.length > 1) rows.push(all);
  return card('Threads', h('small', {}, '% of the time'), table(
      [['', ''], ['', 'wide'], ['busy', 'n'], ...told.map((cause) => [[h('i', {class: 'key', style: `background: ${causeColor(causes, causes.indexOf(cause))}`}), cause], 'n']), ['tasks', 'n']], rows));
}

/// How often a kernel took how long: the height is the root of the count, so that few stay visible.
function histogram(data, color, kernel) {
  const [width, height] = [132, 26];
  const most = Math.sqrt(Math.max(...data.counts));
  const step = width / data.counts.length;
  const svg = (tag, attributes, ...children) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const title = svg('title', {});
  title.textContent = `from ${format.us(data.least_us)} to ${format.us(data.most_us)} µs on a logarithmic scale; heights are roots of counts`;
  const x = (us) => (data.most_us > data.least_us ? Math.log(us / data.least_us) / Math.log(data.most_us / data.least_us) * width : 1);
  const bars = data.most_us > data.least_us ? data.counts : [data.counts.reduce((a, b) => a + b, 0)];
  const tallest = data.most_us > data.least_us ? most : Math.sqrt(bars[0]);
  return svg('svg', {width, height: height + 1, viewBox: `0 0 ${width} ${height + 1}`, role: 'img'}, title,
      svg('rect', {x: 0, y: height, width, height: 1, fill: 'currentColor', opacity: 0.25}),
      svg('rect', {x: x(kernel.low_us), y: 0, width: Math.max(1, x(kernel.high_us) - x(kernel.low_us)), height, fill: 'currentColor', opacity: 0.07}),
      ...bars.map((count, i) => svg('rect', {
        x: i * step, width: Math.max(1, step - 0.6), y: height - Math.ceil(height * Math.sqrt(count) / tallest), height: Math.ceil(height * Math.sqrt(count) / tallest), fill: color})),
      svg('rect', {x: Math.min(width - 1, x(kernel.median_us)), y: 0, width: 1, height, fill: 'currentColor', opacity: 0.7}));
}

function kernelsCard(run, kernels) {
  const all = run.figures.kernels.reduce((total, kernel) => total + kernel.seconds, 0);
  const rows = run.figures.kernels.map((kernel) => {
    const i = kernels.findIndex((id) => run.names[id] === kernel.kernel);
    const color = kernelColors[i] || restColor;
    const data = run.histograms.find((one) => one.kernel === kernel.kernel && one.role === kernel.role);
    return [
      [h('i', {class: 'key', style: `background: ${color}`}), kernel.kernel], kernel.role, format.count(kernel.count), format.seconds(kernel.seconds),
      (100 * kernel.seconds / all).toFixed(1), format.us(kernel.median_us), format.us(kernel.low_us), format.us(kernel.high_us), format.us(kernel.most_us),
      h('span', {class: kernel.outliers ? 'alert' : 'zero'}, format.count(kernel.outliers)), data ? histogram(data, color, kernel) : ''];
  });
  return card('Kernels', h('small', {}, 'times in µs'), table(
      [['', ''], ['on a', ''], ['count', 'n'], ['in all', 'n'], ['%', 'n'], ['median', 'n'], ['5 %', 'n'], ['95 %', 'n'], ['most', 'n'], ['outliers', 'n'], ['spread', '']], rows));
}

function transfersCard(run) {
  const rows = ['messages', 'copies'].filter((what) => run.figures[what].count > 0).map((what) => {
    const one = run.figures[what];
    return [what, format.count(one.count), format.bytes(one.bytes), format.seconds(one.seconds), format.percent(one.hidden),
      h('span', {class: 'bar'}, h('i', {style: `width: ${100 * one.hidden}%`}))];
  });
  if (rows.length === 0) return null;
  return card('Transfers', null, table([['', ''], ['count', 'n'], ['volume', 'n'], ['time in all', 'n'], ['hidden behind tasks', 'n'], ['', 'wide']], rows));
}

/// Operations of groups belong to no job: all of the run's.
function groupsCard(run) {
  const operations = run.figures.collectives || [];
  if (operations.length === 0) return null;
  const longest = operations[0].seconds;
  const rows = operations.map((one) => [
    one.operation, one.algorithm, format.count(one.count), format.bytes(one.bytes), format.seconds(one.seconds),
    h('span', {class: 'bar'}, h('i', {style: `width: ${longest > 0 ? 100 * one.seconds / longest : 0}%`})), format.us(one.median_us), format.us(one.most_us)]);
  return card('Operations of groups', h('small', {}, 'of the whole run, each as long as on the member where it took longest; times in µs'), table(
      [['', ''], ['way', ''], ['count', 'n'], ['volume', 'n'], ['in all', 'n'], ['', 'wide'], ['median', 'n'], ['most', 'n']], rows));
}

function pathCard(title, parts, run, kernels) {
  const all = parts.reduce((total, part) => total + part.seconds, 0);
  const rows = parts.map((part) => {
    const i = kernels.findIndex((id) => run.names[id] === part.what);
    return [
      [h('i', {class: 'key', style: `background: ${i >= 0 ? kernelColors[i] || restColor : 'transparent'}`}), part.what], format.count(part.count), format.seconds(part.seconds),
      format.percent(all > 0 ? part.seconds / all : 0),
      h('span', {class: 'bar'}, h('i', {style: `width: ${all > 0 ? 100 * part.seconds / all : 0}%`}))];
  });
  return card(title, null, table([['', ''], ['count', 'n'], ['', 'n'], ['', 'n'], ['', 'wide']], rows));
}

/// How long runs took, and what their threads did meanwhile.
function timesCard(runs) {
  const most = Math.max(...runs.map((run) => run.figures.seconds));
  const rows = runs.map((run) => {
    const {causes, figures} = run;
    const sum = sumOf(figures.threads, causes);
    const parts = [['busy', sum.busy, 'var(--busy)'], ...causes.map((cause, i) => [cause, sum.idle[cause], causeColor(causes, i)])];
    const share = (value) => (sum.all > 0 ? value / sum.all * figures.seconds / most : 0);
    return [runName(run), runTitle(run), format.seconds(figures.seconds), h('span', {class: 'stack tall'}, parts.map(([name, value, color]) => (
      h('i', {style: `width: ${100 * share(value)}%; background: ${color}`, title: `${name} ${format.percent(value / Math.max(1e-12, sum.all))}`}))))];
  });
  const {causes} = runs[0];
  const legend = h('div', {class: 'chips'}, [['busy', 'var(--busy)'], ...causes.map((cause, i) => [cause, causeColor(causes, i)])].map(([name, color]) => (
    h('span', {class: 'chip'}, h('i', {class: 'key', style: `background: ${color}`}), name))));
  return card('Time, and what threads did meanwhile', null, legend, table([['', ''], ['', ''], ['', 'n'], ['', 'most']], rows));
}

/// Figures of several runs side by side, and how they changed against the first.
function comparison(runs) {
  const texts = runs.map((run, i) => runName(run, i));
  const change = (value, base, better) => {
    if (base == null || value == null || base === 0) return '';
    const share = value / base - 1;
    const mark = Math.abs(share) < 0.005 || !better ? '' : (share < 0) === (better < 0) ? 'good' : 'bad';
    const text = share > 9 ? `×${thin}${(1 + share).toFixed(0)}` : `${share > 0 ? '+' : share < 0 ? '−' : '±'}${(100 * Math.abs(share)).toFixed(1)}${thin}%`;
    return h('span', {class: mark}, text);
  };
  const rows = [];
  const add = (label, values, text, better = 0) => {
    if (values.every((value) => value == null)) return;
    rows.push([label, ...values.flatMap((value, i) => [value == null ? '–' : text(value), i > 0 ? change(value, values[0], better) : null].slice(0, i > 0 ? 2 : 1))]);
  };
  const group = (title) => {
    const row = [title, ...Array(2 * runs.length - 1).fill('')];
    row.kind = 'group';
    rows.push(row);
  };
  const figures = runs.map((run) => run.figures);
  add('time', figures.map((one) => one.seconds), format.seconds, -1);
  add('GFLOP/s', figures.map((one) => one.about?.gflops), (value) => value.toFixed(1), 1);
  add('tasks', figures.map((one) => one.tasks), format.count);
  group('bounds');
  for (const key of new Set(figures.flatMap((one) => Object.keys(one.bounds)))) {
    const find = (one) => boundsOf(one).find((bound) => bound.key === key);
    const label = figures.map(find).find(Boolean)?.label;
    if (label) add(label, figures.map((one) => find(one)?.seconds), format.seconds);
  }
  group('threads, seconds of all');
  const causes = [...new Set(runs.flatMap((run) => run.causes))];
  const sums = figures.map((one) => sumOf(one.threads, causes));
  add('busy', sums.map((sum) => sum.busy), format.seconds);
  for (const cause of causes) add(cause, sums.map((sum) => sum.idle[cause]), format.seconds, -1);
  if (figures.some((one) => one.messages.count + one.copies.count > 0)) group('transfers');
  for (const what of ['messages', 'copies']) {
    if (figures.some((one) => one[what].count > 0)) {
      add(what, figures.map((one) => one[what].bytes), format.bytes, -1);
    }
  }
  const ways = new Set(figures.flatMap((one) => (one.collectives || []).map((row) => `${row.operation}, ${row.algorithm}`)));
  if (ways.size > 0) group('operations of groups, median in µs');
  for (const name of ways) {
    add(name, figures.map((one) => (one.collectives || []).find((row) => `${row.operation}, ${row.algorithm}` === name)?.median_us), format.us, -1);
  }
  for (const [title, key, text, better] of [['kernels, median in µs', 'median_us', format.us, -1], ['kernels, count', 'count', format.count, 0]]) {
    group(title);
    for (const name of new Set(figures.flatMap((one) => one.kernels.map((kernel) => `${kernel.kernel} on a ${kernel.role}`)))) {
      add(name, figures.map((one) => one.kernels.find((kernel) => `${kernel.kernel} on a ${kernel.role}` === name)?.[key]), text, better);
    }
  }
  const columns = [['', ''], ...texts.flatMap((text, i) => (i > 0 ? [[text, 'n'], ['change', 'n']] : [[text, 'n']]))];
  return card('Runs side by side', h('small', {}, 'changes are against the first'), table(columns, rows, {class: 'compared'}));
}
