import { enc, setReach } from '../api'
import { follow } from '../follow'
import { isIdle } from '../format'
import { merge } from '../merge'
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
  private stop: (() => void) | null = null
  private path = ''
  /** How many pictures came: places and numbers of boxes and wires hold for one. */
  shape = 0

  constructor(private readonly root: string, toggled: string[]) { this.fold(toggled) }

  /** Which boxes are drawn the other way than by default. What was seen stays until the other picture comes. */
  fold(toggled: string[]): void {
    const path = `v1/jobs/${enc(this.root)}/live${toggled.length ? '?' + toggled.map(t => `toggle=${enc(t)}`).join('&') : ''}`
    if (path === this.path) return
    this.path = path
    if (!this.stop) return
    this.end()
    this.begin()
  }

  subscribe = (fn: () => void): (() => void) => {
    this.listeners.add(fn)
    return () => { this.listeners.delete(fn) }
  }

  private tell(): void { for (const fn of this.listeners) fn() }

  /** Follows the tree while the page can be seen; a hidden one holds no connection. */
  start(): () => void {
    const seen = (): void => { if (document.hidden) this.end(); else this.begin() }
    document.addEventListener('visibilitychange', seen)
    seen()
    return () => { document.removeEventListener('visibilitychange', seen); this.end() }
  }

  private begin(): void { this.stop ??= follow(this.path, (kind, data) => this.take(kind, data)) }

  private end(): void {
    this.stop?.()
    this.stop = null
  }

  private take(kind: string, data: string): void {
    if (kind === 'snapshot') this.snapshot(JSON.parse(data) as Picture)
    else if (kind === 'change') this.change(JSON.parse(data) as Changes)
    else if (kind === 'trouble') setReach({ ok: false, detail: (JSON.parse(data) as { detail: string }).detail, needsToken: false })
    else if (kind === 'deleted') { this.gone = true; this.trouble = 'This job was deleted.' }
    else if (kind === 'away') setReach({ ok: false, detail: 'The connection to the server ended.', needsToken: false })
    else if (kind === 'refused') this.refused(JSON.parse(data) as { status: number; detail: string })
    if (kind === 'snapshot' || kind === 'change' || kind === 'open') {
      this.trouble = ''
      setReach({ ok: true, detail: '', needsToken: false })
    }
    if (this.gone) this.end()
    this.tell()
  }

  private refused(p: { status: number; detail: string }): void {
    this.trouble = p.detail
    if (p.status === 404) this.gone = true
    if (p.status === 401) setReach({ ok: true, detail: p.detail, needsToken: true })
    if (p.status >= 502) setReach({ ok: false, detail: p.detail, needsToken: false })
  }

  private snapshot(p: Picture): void {
    this.picture = p
    this.shape++
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
    })
    c.n?.forEach((node, i) => {
      const status = c.s?.[i] ?? -1
      if (status !== p.nodes.status[node] && active.has(p.statuses[status] ?? '')) this.latest = node
      this.nodeSeq[node] = c.seq
    })
    merge(p, c)
  }

  /** Messages a second that pass an edge now: nothing after some seconds without any. */
  rateOf(edge: number, now: number): number {
    return now - (this.rateAt[edge] ?? 0) < 2500 ? this.rate[edge] ?? 0 : 0
  }

  statusOf(node: number): string {
    const p = this.picture
    return p?.statuses[p.nodes.status[node] ?? -1] ?? ''
  }

  /** Whose dead letters those of a box are: of several jobs, those of the tree. */
  deadLink(node: number): string {
    const p = this.picture
    return p ? (p.nodes.counts[node] && p.nodes.kind[node] !== 1 ? p.root : p.nodes.job[node]) ?? '' : ''
  }

  /** How a box looks: as its status, but one that merely sleeps until something comes is idle. */
  lookOf(node: number): string {
    const status = this.statusOf(node)
    return isIdle(status, this.picture?.nodes.note[node]) ? 'idle' : status
  }
}
