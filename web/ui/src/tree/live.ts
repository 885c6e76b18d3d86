import { ApiError, enc, setReach, stream } from '../api'
import type { Changes, Picture } from '../types'

const active = new Set(['running', 'queued'])

/** A tree as it is now: a snapshot, and then what changes. Values are absolute, so what is merged or lost does no harm. */
export class LiveTree {
  picture: Picture | null = null
  trouble = ''
  gone = false
  /** Of each node: how often it changed; of each edge: messages a second, and when that was learned. */
  nodeSeq: number[] = []
  rate: number[] = []
  rateAt: number[] = []
  latest = -1 // node that became active last
  private totalAt: number[] = []
  private readonly listeners = new Set<() => void>()
  private stop = new AbortController()
  private running = false
  private readonly path: string

  constructor(root: string, toggled: string[]) {
    this.path = `v1/jobs/${enc(root)}/live${toggled.length ? '?' + toggled.map(t => `toggle=${enc(t)}`).join('&') : ''}`
  }

  subscribe = (fn: () => void): (() => void) => {
    this.listeners.add(fn)
    return () => { this.listeners.delete(fn) }
  }

  private tell(): void { for (const fn of this.listeners) fn() }

  /** Follows the tree while the page can be seen; a hidden one holds no connection. */
  start(): () => void {
    const seen = (): void => { if (document.hidden) this.end(); else void this.run() }
    document.addEventListener('visibilitychange', seen)
    seen()
    return () => { document.removeEventListener('visibilitychange', seen); this.end() }
  }

  private end(): void { this.running = false; this.stop.abort() }

  private async run(): Promise<void> {
    if (this.running) return
    this.running = true
    const stop = this.stop = new AbortController()
    while (!stop.signal.aborted && !this.gone) {
      try {
        await stream(this.path, stop.signal, e => this.take(e.kind, e.data))
      } catch (e) {
        if (stop.signal.aborted) return
        if (e instanceof ApiError) {
          this.trouble = e.message
          if (e.status === 404) this.gone = true
          this.tell()
        }
      }
      if (!this.gone && !stop.signal.aborted) {
        setReach({ ok: false, detail: 'The connection to the server ended.', needsToken: false })
        await new Promise(done => setTimeout(done, 1000))
      }
    }
  }

  private take(kind: string, data: string): void {
    if (kind === 'snapshot') this.snapshot(JSON.parse(data) as Picture)
    else if (kind === 'change') this.change(JSON.parse(data) as Changes)
    else if (kind === 'trouble') this.trouble = (JSON.parse(data) as { detail: string }).detail
    else if (kind === 'deleted') { this.gone = true; this.trouble = 'This job was deleted.' }
    if (kind === 'snapshot' || kind === 'change') this.trouble = ''
    this.tell()
  }

  private snapshot(p: Picture): void {
    this.picture = p
    this.nodeSeq = p.nodes.id.map(() => p.seq)
    this.rate = p.edges.from.map(() => 0)
    this.rateAt = p.edges.from.map(() => 0)
    this.totalAt = p.edges.from.map(() => p.ms)
  }

  private change(c: Changes): void {
    const p = this.picture
    if (!p || p.epoch !== c.epoch) return
    const now = performance.now()
    c.e?.forEach((edge, i) => {
      const total = c.t?.[i] ?? 0
      const passed = total - (p.edges.total[edge] ?? 0)
      const ms = Math.max(50, c.ms - (this.totalAt[edge] ?? c.ms))
      if (passed > 0) {
        const fresh = (passed * 1000) / Math.min(ms, 2000)
        this.rate[edge] = now - (this.rateAt[edge] ?? 0) < 3000 ? 0.6 * (this.rate[edge] ?? 0) + 0.4 * fresh : fresh
        this.rateAt[edge] = now
      }
      this.totalAt[edge] = c.ms
      p.edges.total[edge] = total
      p.edges.waiting[edge] = c.w?.[i] ?? 0
    })
    c.n?.forEach((node, i) => {
      const status = c.s?.[i] ?? -1
      if (status !== p.nodes.status[node] && active.has(p.statuses[status] ?? '')) this.latest = node
      p.nodes.status[node] = status
      p.nodes.counts[node] = c.c?.[i] ?? null
      p.nodes.note[node] = c.o?.[i] ?? ''
      this.nodeSeq[node] = c.seq
    })
    p.seq = c.seq
    p.ms = c.ms
  }

  /** Messages a second that pass an edge now: nothing after some seconds without any. */
  rateOf(edge: number, now: number): number {
    return now - (this.rateAt[edge] ?? 0) < 2500 ? this.rate[edge] ?? 0 : 0
  }

  statusOf(node: number): string {
    const p = this.picture
    return p?.statuses[p.nodes.status[node] ?? -1] ?? ''
  }
}
