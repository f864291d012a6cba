// What a row of the timeline shows, drawn in time proportional to its pixels: where there are more items than pixels, from a
// pyramid of time slices that know what took most of them, and how much.

/// Below this, items are looked at one by one.
const PYRAMID_LEAST = 1024;

class Lane {
  /// Items in order of their starts. `kind`: a number below 255. `id(i)`: what item i is to the caller. `weight` of an item: which
  /// part of its time something happened, 1 unless given.
  constructor(start, end, kind, id, weight = null) {
    Object.assign(this, {start, end, kind, id, weight, n: start.length, levels: null});
    this.longest = 0;
    for (let i = 0; i < this.n; ++i) this.longest = Math.max(this.longest, end[i] - start[i]);
  }

  build() {
    const span = this.n > 0 ? Math.max(1, this.end[this.n - 1]) : 1;
    let count = 1024;
    while (count < 2 * this.n && count < 1 << 21) count *= 2;
    this.origin = this.n > 0 ? this.start[0] : 0;
    this.width = Math.max(1, span - this.origin) / count;
    const kind = new Uint8Array(count);
    const cover = new Uint8Array(count);
    const sums = new Float64Array(256);
    let bucket = 0;
    let used = [];
    const flush = () => {
      let most = 0;
      let all = 0;
      for (const k of used) {
        all += sums[k];
        if (sums[k] > most) {
          most = sums[k];
          kind[bucket] = k;
        }
        sums[k] = 0;
      }
      used = [];
      cover[bucket] = Math.min(255, Math.ceil(255 * all / this.width));
    };
    const add = (at, k, ns) => {
      if (at !== bucket) {
        flush();
        bucket = at;
      }
      if (sums[k] === 0) used.push(k);
      sums[k] += ns;
    };
    for (let i = 0; i < this.n; ++i) {
      const from = Math.max(0, Math.min(count - 1, Math.floor((this.start[i] - this.origin) / this.width)));
      const to = Math.max(from, Math.min(count - 1, Math.floor((this.end[i] - this.origin) / this.width)));
      const weight = this.weight ? this.weight(i) : 1;
      for (let b = Math.max(from, bucket); b <= to; ++b) {
        const low = this.origin + b * this.width;
        add(b, this.kind[i], weight * Math.max(0, Math.min(this.end[i], low + this.width) - Math.max(this.start[i], low)));
      }
    }
    flush();
    this.levels = [{kind, cover}];
    for (let size = count / 2; size >= 128; size /= 2) this.levels.push(this.coarser(this.levels.at(-1), size));
  }

  coarser(fine, size) {
    const kind = new Uint8Array(size);
    const cover = new Uint8Array(size);
    for (let i = 0; i < size; ++i) {
      const [a, b] = [fine.cover[2 * i], fine.cover[2 * i + 1]];
      kind[i] = fine.kind[a >= b ? 2 * i : 2 * i + 1];
      cover[i] = (a + b + 1) >> 1;
    }
    return {kind, cover};
  }

  /// The first item that may reach beyond `time`.
  firstAfter(time) {
    let i = lowerBound(this.start, time - this.longest);
    while (i < this.n && this.end[i] <= time) ++i;
    return i;
  }

  /// Which kind each pixel column is of, and how much of it, 0 to 1, from time t0 on.
  sample(t0, perPixel, width, kinds, covers) {
    kinds.fill(255, 0, width);
    covers.fill(0, 0, width);
    const t1 = t0 + perPixel * width;
    const low = lowerBound(this.start, t0);
    const high = lowerBound(this.start, t1);
    if (high - low > width / 4 && this.n > PYRAMID_LEAST) {
      if (!this.levels) this.build();
      if (this.width <= perPixel) return this.sampleLevel(t0, perPixel, width, kinds, covers);
    }
    // Items before `low` that reach into view: of lanes without overlap, one.
    let i = low;
    while (i > 0 && this.start[i - 1] > t0 - this.longest) {
      --i;
      if (low - i > 64) break;
    }
    for (; i < high; ++i) this.addItem(i, t0, perPixel, width, kinds, covers);
    return false;
  }

  addItem(i, t0, perPixel, width, kinds, covers) {
    const x0 = Math.max(0, (this.start[i] - t0) / perPixel);
    const x1 = Math.min(width, (this.end[i] - t0) / perPixel);
    if (x1 <= 0 || x0 >= width) return;
    const [from, to] = [Math.floor(x0), Math.min(width - 1, Math.floor(x1))];
    const weight = this.weight ? this.weight(i) : 1;
    const kind = this.kind[i];
    // Long enough to be seen as one: a gap at its end.
    const notch = x1 - x0 >= 4 && x1 < width ? to - (x1 === to ? 1 : 0) : -1;
    for (let x = from; x <= to; ++x) {
      let share = (Math.min(x1, x + 1) - Math.max(x0, x)) * weight;
      if (from === to) share = Math.max(share, 0.02);
      if (share <= 0) continue;
      if (share >= covers[x] || kinds[x] === 255) kinds[x] = kind;
      covers[x] = x === notch ? Math.min(0.35, covers[x] + share) : Math.min(1, covers[x] + share);
    }
  }

  sampleLevel(t0, perPixel, width, kinds, covers) {
    let level = 0;
    while (level + 1 < this.levels.length && this.width * 2 ** (level + 1) <= perPixel) ++level;
    const {kind, cover} = this.levels[level];
    const scale = 1 / (this.width * 2 ** level);
    const [step, origin] = [perPixel * scale, (t0 - this.origin) * scale];
    // Two slices a pixel at most, as the next level has them twice as long.
    const first = Math.max(0, Math.ceil(-origin / step));
    const last = Math.min(width, Math.ceil((kind.length - origin) / step));
    for (let x = first; x < last; ++x) {
      const a = (origin + x * step) | 0;
      const b = Math.min(kind.length - 1, Math.max(a, ((origin + (x + 1) * step) | 0) - 1));
      kinds[x] = kind[cover[a] >= cover[b] ? a : b];
      covers[x] = (cover[a] + cover[b]) / 510;
    }
    return true;
  }

  /// The item at a time, or the nearest within `slack`; -1: none.
  find(time, slack) {
    let best = -1;
    let distance = slack;
    for (let i = Math.min(this.n - 1, lowerBound(this.start, time + slack)); i >= 0; --i) {
      if (this.start[i] < time - slack - this.longest) break;
      const d = Math.max(0, this.start[i] - time, time - this.end[i]);
      if (d < distance || (d === 0 && best < 0)) [best, distance] = [i, d];
      if (d === 0) break;
    }
    return best;
  }
}

/// Distributes items (in order of starts) over as few lanes as keep those of one apart, at most `most`; then the one that is
/// free first takes more. Lists of indices.
function apart(n, start, end, most = 32) {
  const lanes = [];
  const free = [];
  for (let i = 0; i < n; ++i) {
    let lane = free.findIndex((time) => time <= start(i));
    if (lane < 0 && lanes.length < most) lane = lanes.push([]) - 1;
    if (lane < 0) lane = free.indexOf(Math.min(...free));
    lanes[lane].push(i);
    free[lane] = Math.max(free[lane] || 0, end(i));
  }
  return lanes.length > 0 ? lanes : [[]];
}

/// Items of a device by the stream that ran them: lists of indices, counted from `low`.
function byStream(stream, low, high) {
  const lanes = new Map();
  for (let i = low; i < high; ++i) {
    if (!lanes.has(stream[i])) lanes.set(stream[i], []);
    lanes.get(stream[i]).push(i - low);
  }
  return [...lanes.keys()].sort((a, b) => a - b).map((one) => lanes.get(one));
}

/// A lane of some of many items.
function laneOf(ids, start, end, kind) {
  const pick = (of, Type) => Type.from(ids, of);
  return new Lane(pick(start, Float64Array), pick(end, Float64Array), pick(kind, Uint8Array), (i) => ids[i]);
}

/// The lanes in which a thread's tasks are drawn: one, or one for each stream of a device.
function taskLanes(run, t, kinds) {
  const {tasks} = run;
  const [low, high] = [tasks.first[t], tasks.first[t + 1]];
  if (run.threads[t].role === 'device' && low < high) {
    const lanes = tasks.stream.subarray(low, high).every((stream) => stream > 0)
      ? byStream(tasks.stream, low, high)
      : apart(high - low, (i) => tasks.start[low + i], (i) => tasks.end[low + i]);
    return lanes.map((ids) => laneOf(ids.map((i) => i + low), (i) => tasks.start[i], (i) => tasks.end[i], (i) => kinds[tasks.kernel[i]]));
  }
  const kind = new Uint8Array(high - low);
  for (let i = low; i < high; ++i) kind[i - low] = kinds[tasks.kernel[i]];
  const weight = tasks.idle && ((i) => 1 - tasks.idle[low + i] / Math.max(1, tasks.end[low + i] - tasks.start[low + i]));
  return [new Lane(tasks.start.subarray(low, high), tasks.end.subarray(low, high), kind, (i) => i + low, weight)];
}

/// Idle parts of a thread with their causes.
function idleLane(run, t) {
  const {idle} = run;
  const [low, high] = [idle.first[t], idle.first[t + 1]];
  return new Lane(idle.start.subarray(low, high), idle.end.subarray(low, high), idle.cause.subarray(low, high), (i) => i + low);
}
