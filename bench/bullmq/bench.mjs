// BullMQ at the work of the benchmark. Takes one argument, JSON that says what to do, and
// prints what it measured as one line of JSON. A wrong result is an error.
import { FlowProducer, Queue, Worker } from 'bullmq';
import Redis from 'ioredis';

const DIGITS = 10, ITEM = 98; // as in internal/lab/item.go
const item = (i) => String(i).padStart(DIGITS, '0') + 'x'.repeat(ITEM - DIGITS);
const number = (text) => {
  if (!/^\d{10}x{88}$/.test(text)) throw new Error(`${text} is not one of the messages that were sent`);
  return Number(text.slice(0, DIGITS));
};
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const want = JSON.parse(process.argv[2]);
const size = want.size, idleTime = size.idle / 1e6; // from ns to ms
const [host, port] = want.redis.split(':');
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const redis = new Redis(connection);
const options = { removeOnComplete: true };
const opened = [redis];

// open remembers what is to be closed.
async function open(x) {
  opened.push(x);
  x.on('error', (err) => fail(err));
  await x.waitUntilReady();
  return x;
}
const queue = (name = 'bench') => open(new Queue(name, { connection, defaultJobOptions: options }));
const flows = () => open(new FlowProducer({ connection }));
const serve = async (handle, name = 'bench') => {
  const w = await open(new Worker(name, handle, { connection, concurrency: want.concurrency }));
  w.on('failed', (job, err) => fail(err));
  return w;
};

function fail(err) {
  console.error(err?.stack ?? err);
  process.exit(1);
}

// ledger counts items that arrive.
function ledger(n) {
  const at = new Array(n);
  let left = n, tell = () => {};
  return {
    arrived(text) {
      const i = number(text);
      if (i >= n || at[i] !== undefined) fail(`item ${i} arrived more than once, or was not sent`);
      at[i] = performance.now();
      left--;
      tell();
    },
    async waitFor(i) {
      while (at[i] === undefined) await new Promise((resolve) => (tell = resolve));
      return at[i];
    },
    async all() {
      while (left > 0) await new Promise((resolve) => (tell = resolve));
    },
  };
}

// produce calls fn for each number below n, as many at a time as there are producers.
const produce = (n, fn) =>
  Promise.all(Array.from({ length: want.concurrency }, async (_, p) => {
    for (let i = p; i < n; i += want.concurrency) await fn(i);
  }));

async function info(section) {
  const text = await redis.info(section);
  return Object.fromEntries(text.split('\r\n').filter((l) => l.includes(':')).map((l) => {
    const at = l.indexOf(':');
    return [l.slice(0, at), l.slice(at + 1)];
  }));
}

async function usage() {
  const cpu = await info('cpu'), own = process.cpuUsage();
  return {
    wall: performance.now() / 1e3,
    redis: Number(cpu.used_cpu_sys) + Number(cpu.used_cpu_user),
    own: (own.user + own.system) / 1e6,
  };
}

// measure does some work and tells the seconds that it took.
async function measure(work) {
  const before = await usage();
  await work();
  const after = await usage();
  return { wall: after.wall - before.wall, redis: after.redis - before.redis, own: after.own - before.own };
}

const throughput = (name, n, unit, used) => [
  { name, value: n / used.wall, unit: unit + '/s', less: false },
  { name: name + '.redis_cpu', value: (used.redis / n) * 1e6, unit: 'µs', less: true },
  { name: name + '.own_cpu', value: (used.own / n) * 1e6, unit: 'µs', less: true },
];

function percentiles(name, times) {
  times.sort((a, b) => a - b);
  const p = (q) => times[Math.min(Math.ceil((times.length * q) / 100), times.length) - 1];
  return [
    { name: name + '.p50', value: p(50), unit: 'ms', less: true },
    { name: name + '.p99', value: p(99), unit: 'ms', less: true },
  ];
}

// Chains: each stage adds the next. Flows: all three are added at once, each the parent of the
// one before it.
async function chain(seen) {
  const q = await queue();
  await serve(async (job) => {
    if (job.name === 's3') seen.arrived(job.data);
    else await q.add(job.name === 's1' ? 's2' : 's3', job.data);
  });
  return (i) => q.add('s1', item(i));
}

async function flow(seen) {
  const f = await flows();
  await serve(async (job) => {
    if (job.name === 's3') seen.arrived(job.data);
  });
  const stage = (name, i, children) => ({ name, queueName: 'bench', data: item(i), opts: options, children });
  return (i) => f.add(stage('s3', i, [stage('s2', i, [stage('s1', i)])]));
}

const many = (start) => async () => {
  const seen = ledger(size.chain), add = await start(seen);
  const used = await measure(async () => {
    await produce(size.chain, add);
    await seen.all();
  });
  return throughput('chain', size.chain, 'items', used);
};

const oneByOne = (name, n, start, pause) => async () => {
  const seen = ledger(n), add = await start(seen), times = [];
  for (let i = 0; i < n; i++) {
    if (pause) await sleep(20 + Math.random() * 40);
    const began = performance.now();
    await add(i);
    times.push((await seen.waitFor(i)) - began);
  }
  return percentiles(name, times);
};

async function listen(seen) {
  const q = await queue();
  await serve(async (job) => seen.arrived(job.data));
  return (i) => q.add('listen', item(i));
}

async function fanout() {
  const seen = ledger(size.trees), f = await flows(), n = size.children;
  await serve(async (job) => {
    if (job.name === 'child') return 2 * job.data;
    const values = Object.values(await job.getChildrenValues());
    const total = values.reduce((a, b) => a + b, 0);
    if (values.length !== n || total !== n * (n - 1)) fail(`family ${job.data}: the total of ${values.length} children is ${total}`);
    seen.arrived(item(job.data));
  });
  const children = Array.from({ length: n }, (_, i) => ({ name: 'child', queueName: 'bench', data: i, opts: options }));
  const used = await measure(async () => {
    await produce(size.trees, (i) => f.add({ name: 'parent', queueName: 'bench', data: i, opts: options, children }));
    await seen.all();
  });
  return throughput('fanout', size.trees, 'trees', used);
}

async function commands() {
  const stats = await info('commandstats');
  delete stats.cmdstat_info;
  return Object.values(stats).reduce((sum, s) => sum + Number(/calls=(\d+)/.exec(s)[1]), 0);
}

async function idle() {
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await serve(async () => {}, name);
  await sleep(Math.min(2000, idleTime));
  let n;
  const used = await measure(async () => {
    const before = await commands();
    await sleep(idleTime);
    n = (await commands()) - before;
  });
  return [
    { name: 'idle.commands', value: n / used.wall, unit: '/s', less: true },
    { name: 'idle.own_cpu', value: (used.own / used.wall) * 1e3, unit: 'ms/s', less: true },
    { name: 'idle.redis_cpu', value: (used.redis / used.wall) * 1e3, unit: 'ms/s', less: true },
  ];
}

// memory is what jobs weigh that are to be done tomorrow.
async function memory() {
  const q = await queue(), figures = [];
  const bytes = async () => Number((await info('memory')).used_memory);
  const add = () => q.add('listen', '', { delay: 24 * 3600 * 1000 });
  await produce(want.concurrency, add);
  const empty = await bytes();
  let have = 0;
  for (const n of size.weighed) {
    await produce(n - have, add);
    have = n;
    figures.push({ name: `memory.lone.${n}`, value: ((await bytes()) - empty) / n, unit: 'bytes', less: true });
  }
  return figures;
}

const workloads = {
  chain: many(chain),
  'chain flow': many(flow),
  hops: oneByOne('hops', size.hops, chain),
  'hops flow': oneByOne('hops', size.hops, flow),
  wake: oneByOne('wake', size.wakes, listen, true),
  fanout, idle, memory,
};

try {
  const figures = await workloads[want.workload]();
  for (const x of opened.slice(1)) await x.close();
  redis.disconnect();
  console.log(JSON.stringify({ figures }));
  process.exit(0);
} catch (err) {
  fail(err);
}
