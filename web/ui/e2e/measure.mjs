// Measures the live tree: node e2e/measure.mjs [--jobs 10000] [--rate 5000] [--seconds 10] [--pages 10] [--only input,server,pipeline]
//
// input     how fast the page answers keys, clicks and pulling (Event Timing: from the event to the next picture), in a tree of so
//           many jobs of which some move so many messages a second; beside it what its main thread did, and a page that shows the jobs list
// server    the CPU of the serving process, which runs no jobs here, and of Redis, with 0, 1 and so many listeners
// pipeline  how many messages a second move, with and without listeners, in turns
//
// A redis-server, an engine and a browser share this machine with the page: on few cores they take its time.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { browser, program, until, World } from './harness.mjs'

const { values: flags } = parseArgs({ options: {
  jobs: { type: 'string', default: '10000' }, rate: { type: 'string', default: '5000' }, seconds: { type: 'string', default: '10' },
  pages: { type: 'string', default: '10' }, only: { type: 'string', default: 'input,server,pipeline' }, profile: { type: 'string', default: '' },
} })
const [jobs, rate, seconds, pages] = [flags.jobs, flags.rate, flags.seconds, flags.pages].map(Number)
const sleep = ms => new Promise(done => setTimeout(done, ms))

const lane = 20 // jobs in a lane, one behind the other
const burst = 25 // messages that a busy lane gets each second

/** A graph of so many jobs in lanes, of which as many are fed as move so many messages a second. */
function graph() {
  const lanes = Math.max(1, Math.round(jobs / lane))
  const busy = Math.min(lanes, Math.max(1, Math.round(rate / (burst * lane))))
  const nodes = []
  const edges = []
  for (let i = 0; i < lanes; i++) {
    nodes.push(`  l${i}: {type: lane}`)
    if (i < busy) {
      nodes.push(`  c${i}: {type: every, args: {every: 1s, immediately: true}}`, `  m${i}: {type: flat_map, args: {expr: 'map(1..${burst}, {it.n * ${burst} + #})'}}`)
      edges.push(`  - c${i}.out -> m${i}.in.out -> l${i}.in`)
    }
  }
  const inner = Array.from({ length: lane - 1 }, (_, i) => `      s${i}: {type: ${i === lane - 2 ? 'reduce, args: {expr: acc + 1, seed: 0}' : "map, args: {expr: it}"}, in: {in: {limit: 200}}}`)
  const chain = Array.from({ length: lane - 1 }, (_, i) => i === 0 ? 's0.out' : i === lane - 2 ? `s${i}.in` : `s${i}.in.out`).join(' -> ')
  return `weir: 1\nname: load\nnodes:\n${nodes.join('\n')}\nedges:\n${edges.join('\n')}\ngraphs:\n  lane:\n    nodes:\n${inner.join('\n')}\n    edges:\n      - ${chain}\n    inputs: {in: s0.in}\n    outputs: {out: s${lane - 2}.out}\n`
}

/** CPU seconds of a process so far. */
function cpu(pid) {
  const f = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(f[11]) + Number(f[12])) / 100
}

/** Values of the page that tell what moved in all. */
async function moved(world) {
  const answer = await fetch(`${world.url}/v1/jobs/load/live`)
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('\n\n')) text += (await reader.read()).value
  await reader.cancel()
  const p = JSON.parse(text.slice(text.indexOf('data: ') + 6, text.indexOf('\n\n')))
  return { ms: p.ms, total: p.edges.total.reduce((a, b) => a + b, 0), edges: p.edges.from.length, nodes: p.nodes.id.length }
}

async function speed(world, s) {
  const a = await moved(world)
  await sleep(s * 1000)
  const b = await moved(world)
  return Math.round((b.total - a.total) * 1000 / (b.ms - a.ms))
}

/** Listens as a page does. */
function listen(world) {
  const stop = new AbortController()
  let frames = 0
  const run = async () => {
    const answer = await fetch(`${world.url}/v1/jobs/load/live`, { signal: stop.signal, headers: { 'Accept-Encoding': 'gzip' } })
    for await (const part of answer.body.pipeThrough(new TextDecoderStream())) frames += part.split('\n\n').length - 1
  }
  const over = run().catch(() => undefined)
  return { frames: () => frames, end: async () => { stop.abort(); await over } }
}

const at = (list, p) => list.length ? [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * p))] : 0
const round = (n, d = 0) => Number(n.toFixed(d))

/** Sends inputs 8 times a second without waiting, and tells how long each took until it was seen, and what the main thread did. */
async function phase(page, cdp, name, send) {
  await page.evaluate(() => {
    globalThis.seen = { events: new Map(), long: [], frames: 0, on: true }
    const note = list => { for (const e of list.getEntries()) if (e.interactionId) globalThis.seen.events.set(e.interactionId, Math.max(e.duration, globalThis.seen.events.get(e.interactionId) ?? 0)) }
    globalThis.watching?.forEach(o => o.disconnect())
    const event = new PerformanceObserver(note)
    event.observe({ type: 'event', durationThreshold: 16 })
    const long = new PerformanceObserver(list => { for (const e of list.getEntries()) globalThis.seen.long.push(e.duration) })
    long.observe({ type: 'longtask' })
    globalThis.watching = [event, long]
    const frame = () => { if (globalThis.seen.on) { globalThis.seen.frames++; requestAnimationFrame(frame) } }
    if (globalThis.countFrames) frame()
  })
  const metrics = async () => Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map(m => [m.name, m.value]))
  const before = await metrics()
  const began = Date.now()
  let n = 0
  for (; Date.now() - began < seconds * 1000; n++) {
    await send(n)
    await sleep(Math.max(0, began + (n + 1) * 125 - Date.now()))
  }
  await sleep(500)
  const after = await metrics()
  const got = await page.evaluate(() => { globalThis.seen.on = false; return { events: [...globalThis.seen.events.values()], long: globalThis.seen.long } })
  const all = [...got.events, ...Array(Math.max(0, n - got.events.length)).fill(8)] // under 16 ms nothing is reported
  const spent = Date.now() - began
  const busy = (after.TaskDuration - before.TaskDuration) * 1000
  return { name, inputs: n, p50: at(all, 0.5), p95: at(all, 0.95), most: at(all, 1), long: got.long.length, longest: Math.round(Math.max(0, ...got.long)), busy: round(100 * busy / spent), perInput: round(busy / Math.max(1, n), 1) }
}

async function input(world, b) {
  const rows = []
  const page = await b.page(world, '#/jobs')
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' })
  const key = (name, code) => () => {
    void cdp.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', key: name, code: name, windowsVirtualKeyCode: code })
    void cdp.send('Input.dispatchKeyEvent', { type: 'keyUp', key: name, code: name, windowsVirtualKeyCode: code })
  }
  await page.getByRole('heading', { level: 1 }).waitFor()
  rows.push(await phase(page, cdp, 'jobs list: keys', key('Shift', 16)))
  await page.goto(`${world.url}/#/tree/load`)
  await page.locator('.stage').waitFor({ timeout: 120_000 })
  await sleep(3000)
  await page.locator('.stage').focus()
  if (flags.profile) { await cdp.send('Profiler.enable'); await cdp.send('Profiler.start') }
  rows.push(await phase(page, cdp, 'whole tree: nothing', () => undefined))
  rows.push(await phase(page, cdp, 'whole tree: keys', n => key(n % 2 ? 'Shift' : 'e', n % 2 ? 16 : 69)()))
  const mouse = (type, x, y, more = {}) => void cdp.send('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1, ...more })
  const click = n => { const [x, y] = [300 + (n * 137) % 600, 250 + (n * 71) % 400]; mouse('mousePressed', x, y); mouse('mouseReleased', x, y) }
  rows.push(await phase(page, cdp, 'whole tree: clicks', click))
  const pull = n => {
    const [x, y] = [500, 450]
    mouse('mousePressed', x, y)
    for (let k = 1; k <= 5; k++) mouse('mouseMoved', x + (n % 2 ? -1 : 1) * k * 12, y, { buttons: 1 })
    mouse('mouseReleased', x + (n % 2 ? -60 : 60), y)
  }
  rows.push(await phase(page, cdp, 'whole tree: pulls', pull))
  await page.locator('[data-search]').fill('l0/s3')
  await sleep(1500)
  await page.locator('.stage').focus()
  rows.push(await phase(page, cdp, 'near: nothing', () => undefined))
  rows.push(await phase(page, cdp, 'near: arrows', n => key(['ArrowRight', 'ArrowDown', 'ArrowLeft', 'ArrowUp'][n >> 2 & 3], [39, 40, 37, 38][n >> 2 & 3])()))
  rows.push(await phase(page, cdp, 'near: clicks', click))
  rows.push(await phase(page, cdp, 'near: pulls', pull))
  if (flags.profile) {
    const { profile } = await cdp.send('Profiler.stop')
    const self = new Map()
    const step = profile.timeDeltas.reduce((a, d) => a + d, 0) / profile.samples.length / 1000
    const byId = new Map(profile.nodes.map(n => [n.id, n]))
    for (const s of profile.samples) { const f = byId.get(s).callFrame; const k = `${f.functionName || '?'} ${f.url.split('/').at(-1)}:${f.lineNumber}:${f.columnNumber}`; self.set(k, (self.get(k) ?? 0) + step) }
    for (const [k, ms] of [...self].sort((x, y) => y[1] - x[1]).slice(0, 25)) console.log(`${String(Math.round(ms)).padStart(7)} ms  ${k}`)
  }
  await page.locator('[data-search]').fill('')
  await page.goto(`${world.url}/#/tree/load?as=list`)
  await page.locator('.grid-row').nth(3).waitFor()
  await page.locator('.grid').focus()
  rows.push(await phase(page, cdp, 'list: arrows', key('ArrowDown', 40)))
  const heap = await page.evaluate(() => Math.round(performance.memory.usedJSHeapSize / 1e6))
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length)
  console.log(`heap ${heap} MB, ${nodes} elements`)
  console.table(rows)
  await page.context().close()
}

async function server(world) {
  const rows = []
  for (const n of [0, 1, pages]) {
    const all = Array.from({ length: n }, () => listen(world))
    await sleep(6000)
    const pids = { server: world.server.pid, redis: world.redis.pid, engine: world.engine.pid }
    const before = Object.fromEntries(Object.entries(pids).map(([k, pid]) => [k, cpu(pid)]))
    const frames = all.map(l => l.frames())
    const began = Date.now()
    await sleep(seconds * 2000)
    const s = (Date.now() - began) / 1000
    rows.push({ listeners: n, ...Object.fromEntries(Object.entries(pids).map(([k, pid]) => [`${k} %`, round(100 * (cpu(pid) - before[k]) / s, 1)])), 'events/s': n ? round((all[0].frames() - frames[0]) / s, 2) : 0 })
    await Promise.all(all.map(l => l.end()))
  }
  console.table(rows)
}

async function pipeline(world) {
  const rates = { without: [], with: [] }
  for (let turn = 0; turn < 3; turn++) {
    rates.without.push(await speed(world, seconds))
    const all = Array.from({ length: pages }, () => listen(world))
    await sleep(2000)
    rates.with.push(await speed(world, seconds))
    await Promise.all(all.map(l => l.end()))
    await sleep(1000)
  }
  const mean = l => l.reduce((a, b) => a + b, 0) / l.length
  console.log(`messages/s without pages ${rates.without.join(', ')}; with ${pages} ${rates.with.join(', ')}; change ${round(100 * (mean(rates.with) / mean(rates.without) - 1), 1)} %`)
}

const world = await World.start('--no-engine')
let b
try {
  world.engine = spawn(program, ['worker', '--redis', `redis://127.0.0.1:${world.redisPort}`], { stdio: ['ignore', 'ignore', 'inherit'] })
  await until('types', async () => (await world.api('GET', 'types')).length > 5)
  const began = Date.now()
  await world.api('POST', 'graphs', { alias: 'load', graph: graph() })
  console.log(`${cpus().length} cores, load ${loadavg()[0].toFixed(1)}; graph of ${jobs} jobs started in ${Date.now() - began} ms`)
  await sleep(3000)
  const first = await moved(world)
  console.log(`${first.nodes} boxes, ${first.edges} wires; ${await speed(world, 5)} messages/s move`)
  const wants = flags.only.split(',')
  if (wants.includes('input')) {
    b = await browser()
    await input(world, b)
  }
  if (wants.includes('server')) await server(world)
  if (wants.includes('pipeline')) await pipeline(world)
} finally {
  await b?.close()
  world.engine?.kill('SIGTERM')
  await world.stop()
}
