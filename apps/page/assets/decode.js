// What replay/page has packed into this file, as typed arrays. Times are nanoseconds from the first task's begin on.

/// Numbers as ByteWriter writes them.
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  one() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    let scale = 128;
    do {
      byte = bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  }
  signed() {
    const value = this.one();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
  /// Fills an array, each by one().
  column(array, less = 0) {
    for (let i = 0; i < array.length; ++i) array[i] = this.one() - less;
    return array;
  }
  /// The same of numbers that count from the one before.
  differences(array) {
    let value = 0;
    for (let i = 0; i < array.length; ++i) array[i] = value += this.signed();
    return array;
  }
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/// A part of a run's page; null where it was left out.
async function part(run, name) {
  const element = document.getElementById(`run-${run}-${name}`);
  if (!element) return null;
  const packed = new Blob([bytesOf(element.textContent)]).stream();
  element.remove();  // its text is not needed twice
  const bytes = await new Response(packed.pipeThrough(new DecompressionStream('deflate'))).arrayBuffer();
  return new Uint8Array(bytes);
}

/// Where the elements of each thread begin, and where the last ones end.
function firsts(reader, threads) {
  const first = new Int32Array(threads + 1);
  for (let t = 0; t < threads; ++t) first[t + 1] = first[t] + reader.one();
  return first;
}

function decodeTasks(bytes, threads) {
  const reader = new Reader(bytes);
  const first = firsts(reader, threads);
  const n = first[threads];
  const start = new Float64Array(n);
  for (let i = 0; i < n; ++i) start[i] = reader.signed();
  const end = reader.column(new Float64Array(n));
  const thread = new Int32Array(n);
  for (let t = 0; t < threads; ++t) {
    let before = 0;
    for (let i = first[t]; i < first[t + 1]; ++i) {
      thread[i] = t;
      start[i] += before;
      before = end[i] += start[i];
    }
  }
  const kernel = reader.column(new Uint16Array(n));
  const count = reader.column(new Int32Array(n));
  const stream = reader.column(new Uint8Array(n));  // from 1; 0: of no device, or not recorded
  let idle = null;  // of items of several tasks: how long of their time none ran
  for (let i = 0; i < n; ++i) {
    if (count[i] === 1) continue;
    idle ??= new Float64Array(n);
    idle[i] = reader.one();
  }
  return {first, n, start, end, thread, kernel, count, stream, idle};
}

function decodeIdle(bytes, threads) {
  const reader = new Reader(bytes);
  const first = firsts(reader, threads);
  const n = first[threads];
  const start = reader.column(new Float64Array(n));
  const end = reader.column(new Float64Array(n));
  for (let t = 0; t < threads; ++t) {
    let before = 0;
    for (let i = first[t]; i < first[t + 1]; ++i) {
      start[i] += before;
      before = end[i] += start[i];
    }
  }
  return {first, n, start, end, cause: reader.column(new Uint8Array(n))};
}

function decodeDetails(bytes, tasks) {
  const reader = new Reader(bytes);
  const job = reader.column(new Int32Array(tasks.n), 1);
  const matrix = reader.column(new Int32Array(tasks.n), 1);
  const columns = [new Int32Array(tasks.n), new Float64Array(tasks.n), new Int32Array(tasks.n)];
  for (const column of columns) {
    for (let t = 0; t + 1 < tasks.first.length; ++t) {
      reader.differences(column.subarray(tasks.first[t], tasks.first[t + 1]));
    }
  }
  const [tile, order, priority] = columns;
  const fine = reader.column(new Int32Array(tasks.n));  // the number in the divided task, from 1; 0: of no fine one
  const last = reader.column(new Int32Array(tasks.n));  // the fine task that it waited for last; 0: none
  return {job, matrix, tile, order, priority, fine, last};
}

function decodeTransfers(bytes) {
  const reader = new Reader(bytes);
  const read = (ends) => {
    const n = reader.one();
    const all = {n, start: reader.differences(new Float64Array(n)), end: reader.column(new Float64Array(n))};
    for (let i = 0; i < n; ++i) all.end[i] += all.start[i];
    for (const end of ends) all[end] = reader.column(new Int32Array(n));
    all.job = reader.column(new Int32Array(n), 1);
    all.matrix = reader.column(new Int32Array(n), 1);
    all.tile = reader.differences(new Int32Array(n));
    all.version = reader.column(new Int32Array(n), 1);
    all.bytes = reader.column(new Float64Array(n));
    return all;
  };
  return {messages: read(['from', 'to', 'path']), copies: read(['node', 'from', 'to', 'reason'])};
}

const READ = 0;
const WRITE = 1;

/// The accesses of each task: those of task i are first[i] to first[i + 1].
function decodeAccesses(bytes, tasks, details, matrices) {
  const reader = new Reader(bytes);
  const first = new Int32Array(tasks.n + 1);
  for (let i = 0; i < tasks.n; ++i) first[i + 1] = first[i] + reader.one();
  const n = first[tasks.n];
  const codes = reader.column(new Uint8Array(n));
  const matrix = new Int32Array(n);
  for (let i = 0; i < tasks.n; ++i) {
    for (let a = first[i]; a < first[i + 1]; ++a) {
      matrix[a] = (codes[a] >> 2) & 1 ? reader.one() - 1 : details.matrix[i];
    }
  }
  const open = (shift) => {
    const values = new Int32Array(n);
    for (let a = 0; a < n; ++a) if (((codes[a] >> shift) & 3) === 3) values[a] = reader.signed();
    return values;
  };
  const rows = open(3);
  const columns = open(5);
  const version = new Int32Array(n);
  for (let a = 0; a < n; ++a) version[a] = reader.signed();
  const tile = new Int32Array(n);
  let seen = new Map();
  for (let i = 0; i < tasks.n; ++i) {
    if (i === tasks.first[tasks.thread[i]]) seen = new Map();
    if (!seen.has(tasks.kernel[i])) seen.set(tasks.kernel[i], []);
    const last = seen.get(tasks.kernel[i]);
    const height = matrices.get(details.matrix[i])?.rows || 0;
    const row0 = height > 0 ? details.tile[i] % height : details.tile[i];
    const column0 = height > 0 ? (details.tile[i] - row0) / height : 0;
    let beforeRow = row0;
    let beforeColumn = column0;
    let step = 0;
    for (let a = first[i], slot = 0; a < first[i + 1]; ++a, ++slot) {
      const known = last[slot] ??= {row: 0, column: 0, version: 0};
      if (slot === 0) {
        step = version[a];
        version[a] += known.version;
      } else {
        version[a] += version[a - 1];
      }
      const row = [row0, column0, beforeRow, rows[a] + known.row][(codes[a] >> 3) & 3];
      const column = [column0, row0, beforeColumn, columns[a] + known.column + step][(codes[a] >> 5) & 3];
      const rowsHere = matrices.get(matrix[a])?.rows || 0;
      tile[a] = rowsHere > 0 ? row + column * rowsHere : row;
      known.row = beforeRow = row;
      known.column = beforeColumn = column;
      known.version = version[a];
    }
  }
  const mode = codes.map((code) => code & 3);
  return {first, n, mode, matrix, tile, version};
}

/// Everything of a run that the page has.
async function decodeRun(number, index) {
  const facts = JSON.parse(new TextDecoder().decode(await part(number, 'facts')));
  const matrices = new Map(facts.matrices.map(([id, name, rows, columns]) => [id, {name, rows, columns}]));
  const threads = facts.threads.map(([node, name, role]) => ({node, name, role}));
  const runsTasks = (thread) => thread.role === 'worker' || thread.role === 'device';
  const tasks = decodeTasks(await part(number, 'tasks'), threads.length);
  const idle = decodeIdle(await part(number, 'idle'), threads.length);
  const detailBytes = await part(number, 'details');
  const details = detailBytes && decodeDetails(detailBytes, tasks);
  const transferBytes = await part(number, 'transfers');
  const transfers = transferBytes && decodeTransfers(transferBytes);
  const accessBytes = details && await part(number, 'accesses');
  const accesses = accessBytes && decodeAccesses(accessBytes, tasks, details, matrices);
  return {
    ...facts, matrices, threads, tasks, idle, details, transfers, accesses,
    working: threads.map((_, t) => t).filter((t) => runsTasks(threads[t])),
    leftOut: index.left_out, links: accesses && new Links(threads, tasks, details, accesses),
  };
}
