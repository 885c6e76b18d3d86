// What the tests in the browser stand on: a redis-server and weir serve of their own, and Debian's chromium.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

export const program = process.env.WEIR ?? new URL('../../../bin/weir', import.meta.url).pathname
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const sample = readFileSync(new URL('sample.yaml', import.meta.url), 'utf8')

async function freePort() {
  const s = createServer().listen(0, '127.0.0.1')
  await once(s, 'listening')
  const { port } = s.address()
  s.close()
  await once(s, 'close')
  return port
}

/** Waits until fn answers something true, and answers with it. */
export async function until(what, fn, patience = 30_000) {
  const end = Date.now() + patience
  for (let last; ;) {
    try { const v = await fn(); if (v) return v } catch (e) { last = e }
    if (Date.now() > end) throw new Error(`${what}: not within ${patience} ms${last ? `; ${last.message}` : ''}`)
    await new Promise(done => setTimeout(done, 50))
  }
}

/** A Redis and a server of its own. */
export class World {
  static async start(...flags) {
    const w = new World()
    w.flags = flags
    w.dir = await mkdtemp(join(tmpdir(), 'weir-page-'))
    w.redisPort = await freePort()
    w.port = await freePort()
    w.url = `http://127.0.0.1:${w.port}`
    w.startRedis()
    await w.serve()
    return w
  }

  /** Starts the Redis, with what it had when it was stopped. */
  startRedis() {
    this.redis = spawn('redis-server', ['--port', this.redisPort, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'yes', '--appendfsync', 'no', '--dir', this.dir], { stdio: 'ignore' })
  }

  async stopRedis() {
    this.redis.kill('SIGTERM')
    if (this.redis.exitCode === null && this.redis.signalCode === null) await once(this.redis, 'exit')
  }

  async serve() {
    await until('redis', () => this.weir('stats').then(() => true), 15_000)
    this.server = spawn(program, ['serve', '--addr', `127.0.0.1:${this.port}`, '--redis', `redis://127.0.0.1:${this.redisPort}`, ...this.flags], { stdio: ['ignore', 'ignore', 'inherit'] })
    await until('the server', async () => (await fetch(`${this.url}/readyz`)).ok)
  }

  async stopServer() {
    this.server.kill('SIGTERM')
    if (this.server.exitCode === null) await once(this.server, 'exit')
  }

  /** Runs a command beside the Redis. */
  async weir(...args) {
    const p = spawn(program, [...args, '--redis', `redis://127.0.0.1:${this.redisPort}`], { stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    let err = ''
    p.stdout.on('data', d => { out += d })
    p.stderr.on('data', d => { err += d })
    const [code] = await once(p, 'close')
    if (code) throw new Error(`weir ${args.join(' ')}: ${err}`)
    return out.trim()
  }

  async api(method, path, body, token) {
    const answer = await fetch(`${this.url}/v1/${path}`, { method, headers: { 'Content-Type': 'application/json', ...(token ? { Authorization: `Bearer ${token}` } : {}) }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text ? JSON.parse(text) : null
  }

  /** Starts the sample, a pipeline that goes on and on. */
  sample(alias = 'orders') { return this.api('POST', 'graphs', { alias, graph: sample }) }

  async stop() {
    if (this.server.exitCode === null) await this.stopServer()
    this.redis.kill('SIGKILL')
    await rm(this.dir, { recursive: true, force: true })
  }
}

/** A browser, and pages of it that keep what breaks the policy or throws. */
export async function browser() {
  const b = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
  return {
    close: () => b.close(),
    async page(world, path = '#/', options = {}) {
      const context = await b.newContext({ viewport: { width: 1280, height: 800 }, ...options })
      const page = await context.newPage()
      page.faults = []
      page.refused = [] // requests that were answered with an error
      page.on('response', r => { if (r.status() >= 400) page.refused.push(`${r.status()} ${r.url()}`) })
      page.setDefaultTimeout(15_000)
      page.on('pageerror', e => page.faults.push(`error: ${e.message}`))
      page.on('console', m => { if (/Content Security Policy/i.test(m.text())) page.faults.push(m.text()) })
      await page.addInitScript(() => {
        globalThis.violations = []
        document.addEventListener('securitypolicyviolation', e => globalThis.violations.push(`${e.violatedDirective} ${e.blockedURI}`))
      })
      await page.goto(`${world.url}/${path}`)
      return page
    },
  }
}

/** Does fn on a page of a browser, which must neither throw nor break its policy. */
export async function visit(b, world, path, fn, options) {
  const page = await b.page(world, path, options)
  try {
    await fn(page)
    assert.deepEqual(await faults(page), [])
  } finally {
    await page.context().close()
  }
}

/** What the page did that it must not: nothing. */
export async function faults(page) {
  return [...page.faults, ...await page.evaluate(() => globalThis.violations)]
}

/** What axe finds. */
export async function axe(page) {
  await page.evaluate(axeSource + ';0')
  const { violations } = await page.evaluate(() => globalThis.axe.run(document))
  return violations.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => `${n.target} ${n.failureSummary?.split('\n')[1] ?? ''}`).join(' | ')}`)
}
