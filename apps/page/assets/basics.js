// Elements, texts and colours.

/// An element; attributes first, then children (texts or elements). Texts are never read as HTML.
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'style') element.style.cssText = value;
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

const thin = '\u202f';
const format = {
  /// As the terminal's, but for the micro sign.
  seconds(s) {
    const size = Math.abs(s);
    if (size >= 1) return `${s.toFixed(2)}${thin}s`;
    return size >= 1e-3 ? `${(s * 1e3).toFixed(1)}${thin}ms` : `${(s * 1e6).toFixed(1)}${thin}µs`;
  },
  ns(ns) {
    return Math.abs(ns) < 1e3 ? `${Math.round(ns)}${thin}ns` : format.seconds(ns * 1e-9);
  },
  bytes(bytes) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let unit = 0;
    for (; bytes >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
    return `${unit === 0 ? bytes : bytes.toFixed(2)}${thin}${units[unit]}`;
  },
  count(n) {
    return String(n).replace(/\B(?=(\d{3})+$)/g, thin);
  },
  percent(share, digits = 1) {
    return `${(100 * share).toFixed(digits)}${thin}%`;
  },
  us(us) {
    return us.toFixed(1);
  },
};

/// Distinguishable with any kind of colour vision (Okabe and Ito; then Tol's muted ones).
const kernelColors = ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#cc79a7', '#56b4e9', '#f0e442', '#882255', '#999933', '#44aa99',
  '#332288', '#aa4499', '#ddcc77', '#6699cc'];
const restColor = '#8c8c8c';
const transferColors = {message: '#7b6fd0', copy: '#4f9d9d', fetch: '#b08d57', 'write back': '#a05d7a'};
/// Causes of idle time, light where nothing can be done about them; unknown ones get a colour of `moreCauses`.
const causeColors = {
  'task here': '#6f87b6', 'task there': '#b45f72', message: '#d98b5f', copy: '#d9b95f', runtime: '#8a63b0', generation: '#5fa08a',
  unknown: '#c2b8ae',
};
const moreCauses = ['#7aa35a', '#a3745a', '#5a8fa3', '#a35a93'];
/// `colors`: the theme's, for a canvas; without them for a style.
function causeColor(causes, i, colors = null) {
  if (causes[i] === 'end') return colors ? colors.end : 'var(--end)';
  if (causeColors[causes[i]]) return causeColors[causes[i]];
  const unknown = causes.filter((cause) => !causeColors[cause] && cause !== 'end');
  return moreCauses[unknown.indexOf(causes[i]) % moreCauses.length];
}

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
/// A pixel as ImageData keeps it.
const pixel = ([r, g, b]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
const blend = (from, to, share) => from.map((value, i) => Math.round(value + (to[i] - value) * share));

let themeNow = null;
/// To be called when the page has become light or dark.
function forgetTheme() {
  themeNow = null;
}
/// The page's colours as they are now, light or dark; asking for them takes a moment.
function theme() {
  return themeNow ??= readTheme();
}
function readTheme() {
  const of = (name) => {
    const probe = h('i', {style: `color: var(--${name})`});
    document.body.append(probe);
    const parts = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
    probe.remove();
    return '#' + parts.map((one) => Math.round(one).toString(16).padStart(2, '0')).join('');
  };
  const names = ['card', 'lane', 'ink', 'soft', 'faint', 'line', 'accent', 'busy', 'end'];
  return Object.fromEntries(names.map((name) => [name, of(name)]));
}

/// A canvas of the element's size in the screen's pixels, cleared; coordinates are CSS pixels.
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, d] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== d) {
    canvas.width = w;
    canvas.height = d;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/// Kernels of the job, the longest in all first, as in the table: the place is the colour. Those of other jobs are not among them.
function kernelOrder(run) {
  return [...new Set(run.figures.kernels.map((one) => run.names.indexOf(one.kernel)))];
}

/// "A (5, 3)"
function tileName(run, matrix, tile) {
  if (tile < 0) return '';
  const known = run.matrices.get(matrix);
  if (!known || known.rows <= 0) return `tile ${tile}`;
  return `${known.name} (${tile % known.rows}, ${Math.floor(tile / known.rows)})`;
}
const threadName = (run, t) => `node ${run.threads[t].node}, ${run.threads[t].name}`;
const placeName = (place) => (place === 0 ? 'host' : `device ${place - 1}`);

/// Where `value` would be in a sorted part of an array.
function lowerBound(array, value, low = 0, high = array.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/// Round numbers between two limits.
function ticks(from, to, count) {
  const rough = (to - from) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const all = [];
  for (let i = Math.ceil(from / step); i * step <= to; ++i) all.push(i * step);
  return {step, all};
}
