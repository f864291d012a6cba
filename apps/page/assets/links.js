// What tasks waited for, from the versions of tiles that they read: as replay/graph.cpp finds it.

class Links {
  constructor(threads, tasks, details, accesses) {
    Object.assign(this, {threads, tasks, details, accesses});
    this.table = null;      // access that made a version, by its hash; 0: none, otherwise access + 1
    this.reader = null;     // first access that read the version at a place of the table, + 1
    this.nextReader = null; // and from each access to the next one
    this.lastFine = null;   // of fine tasks, the one that they waited for last
    this.fineAfter = null;  // and those that did
  }

  hash(job, matrix, tile, version) {
    let mixed = Math.imul(tile, 0x9E3779B1) ^ Math.imul(version + 1, 0x85EBCA77) ^ Math.imul(matrix * 64 + job, 0xC2B2AE3D);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x2C1B3C6D);
    return ((mixed ^ (mixed >>> 13)) >>> 0) & (this.table.length - 1);
  }

  /// Who made which version; takes a moment at the first call.
  prepare() {
    if (this.table) return;
    this.prepareFine();
    const {accesses, tasks, details} = this;
    this.owner = new Int32Array(accesses.n);
    let writes = 0;
    for (let i = 0; i < tasks.n; ++i) {
      for (let a = accesses.first[i]; a < accesses.first[i + 1]; ++a) {
        this.owner[a] = i;
        if (accesses.mode[a] !== READ) ++writes;
      }
    }
    let size = 16;
    while (size < 2 * (writes + 1)) size *= 2;
    this.table = new Int32Array(size);
    for (let a = 0; a < accesses.n; ++a) {
      if (accesses.mode[a] === READ) continue;
      const at = this.place(details.job[this.owner[a]], accesses.matrix[a], accesses.tile[a], accesses.version[a] + 1);
      this.table[at] = a + 1;
    }
    this.reader = new Int32Array(size);
    this.nextReader = new Int32Array(accesses.n);
    for (let a = accesses.n - 1; a >= 0; --a) {
      if (accesses.mode[a] === WRITE) continue;
      const at = this.place(details.job[this.owner[a]], accesses.matrix[a], accesses.tile[a], accesses.version[a]);
      if (this.table[at] === 0) continue;
      this.nextReader[a] = this.reader[at];
      this.reader[at] = a + 1;
    }
  }

  prepareFine() {
    const {details, tasks, threads} = this;
    this.lastFine = new Map();
    this.fineAfter = new Map();
    const numbers = new Map();
    const key = (i, number) => `${threads[tasks.thread[i]].node} ${details.job[i]} ${details.order[i]} ${number}`;
    for (let i = 0; i < tasks.n; ++i) if (details.fine[i] > 0) numbers.set(key(i, details.fine[i]), i);
    if (numbers.size === 0) return;
    for (let i = 0; i < tasks.n; ++i) {
      const last = details.last[i] > 0 ? numbers.get(key(i, details.last[i])) : undefined;
      if (last === undefined) continue;
      this.lastFine.set(i, last);
      if (!this.fineAfter.has(last)) this.fineAfter.set(last, []);
      this.fineAfter.get(last).push(i);
    }
  }

  place(job, matrix, tile, version) {
    const {accesses, details, owner, table} = this;
    let at = this.hash(job, matrix, tile, version);
    for (; table[at] !== 0; at = (at + 1) & (table.length - 1)) {
      const a = table[at] - 1;
      if (accesses.tile[a] === tile && accesses.version[a] + 1 === version && accesses.matrix[a] === matrix &&
          details.job[owner[a]] === job) {
        break;
      }
    }
    return at;
  }

  /// Tasks that this one waited for; each once.
  before(task) {
    this.prepare();
    const {accesses, details, tasks} = this;
    const found = this.lastFine.has(task) ? [this.lastFine.get(task)] : [];
    for (let a = accesses.first[task]; a < accesses.first[task + 1]; ++a) {
      if (accesses.mode[a] === WRITE) continue;
      const at = this.table[this.place(details.job[task], accesses.matrix[a], accesses.tile[a], accesses.version[a])];
      if (at === 0) continue;
      const maker = this.owner[at - 1];
      if (maker !== task && tasks.start[maker] <= tasks.start[task] && !found.includes(maker)) found.push(maker);
    }
    return found;
  }

  /// Tasks that waited for this one.
  after(task) {
    this.prepare();
    const {accesses, details, tasks} = this;
    const found = new Set(this.fineAfter.get(task) ?? []);
    for (let a = accesses.first[task]; a < accesses.first[task + 1]; ++a) {
      if (accesses.mode[a] === READ) continue;
      const at = this.place(details.job[task], accesses.matrix[a], accesses.tile[a], accesses.version[a] + 1);
      for (let r = this.reader[at]; r !== 0; r = this.nextReader[r - 1]) {
        const one = this.owner[r - 1];
        if (one !== task && tasks.start[one] >= tasks.start[task]) found.add(one);
      }
    }
    return [...found];
  }

  /// The task that ended last among those that `task` waited for; -1: there is none.
  lastBefore(task) {
    let last = -1;
    for (const one of this.before(task)) if (last < 0 || this.tasks.end[one] > this.tasks.end[last]) last = one;
    return last;
  }

  /// From the job's last task back, each time to what was over last before: as "what led to the last task".
  chain(job) {
    const {tasks, details} = this;
    let at = -1;
    for (let i = 0; i < tasks.n; ++i) {
      if (details.job[i] === job && (at < 0 || tasks.end[i] > tasks.end[at])) at = i;
    }
    const chain = [];
    while (at >= 0 && chain.length <= tasks.n) {
      chain.push(at);
      let next = -1;
      const consider = (other) => {
        if (tasks.end[other] <= tasks.start[at] && (next < 0 || tasks.end[other] > tasks.end[next])) next = other;
      };
      this.before(at).forEach(consider);
      const neighbour = at - 1;
      if (at > tasks.first[tasks.thread[at]] && details.job[neighbour] === job) consider(neighbour);
      at = next;
    }
    return chain.reverse();
  }
}
