import { rate as perSecond, short } from '../format'
import type { LiveTree } from './live'

export interface View { x: number; y: number; zoom: number; w: number; h: number }

interface Colors { [name: string]: string }
const names = ['--bg', '--card', '--line', '--text', '--faint', '--accent', '--frame', '--ok', '--warn', '--bad', '--run', '--idle', '--wire']

function colors(): Colors {
  const style = getComputedStyle(document.documentElement)
  return Object.fromEntries(names.map(n => [n, style.getPropertyValue(n).trim()]))
}

const tone: Record<string, string> = { running: '--run', queued: '--accent', failed: '--bad', completed: '--ok', suspended: '--warn', scheduled: '--accent', waiting: '--accent' }

/** How full a bounded edge is, as a color. */
export function fill(waiting: number, limit: number): string {
  if (limit <= 0 || waiting === 0) return '--wire'
  const share = waiting / limit
  if (share > 0.85) return '--bad'
  return share > 0.6 ? '--warn' : '--ok'
}

function along(points: number[], length: number, at: number): [number, number] {
  let rest = at * length
  for (let i = 0; i + 3 < points.length; i += 2) {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = points.slice(i, i + 4)
    const part = Math.abs(x2 - x1) + Math.abs(y2 - y1)
    if (rest <= part) {
      const t = part ? rest / part : 0
      return [x1 + (x2 - x1) * t, y1 + (y2 - y1) * t]
    }
    rest -= part
  }
  return [points.at(-2) ?? 0, points.at(-1) ?? 0]
}

/** The layer below the boxes: frames, wires, what waits on them and the dots that move; and boxes, too, when they are many. */
export class Painter {
  private lengths: number[] = []
  private bounds: number[] = [] // x1, y1, x2, y2 of each edge
  private of = -1

  private measure(tree: LiveTree): void {
    const p = tree.picture
    if (!p || p.epoch === this.of) return
    this.of = p.epoch
    this.lengths = []
    this.bounds = []
    for (const at of p.edges.points) {
      let length = 0
      let [x1, y1, x2, y2] = [Infinity, Infinity, -Infinity, -Infinity]
      for (let i = 0; i + 1 < at.length; i += 2) {
        const x = at[i] ?? 0
        const y = at[i + 1] ?? 0
        if (i) length += Math.abs(x - (at[i - 2] ?? 0)) + Math.abs(y - (at[i - 1] ?? 0))
        x1 = Math.min(x1, x); x2 = Math.max(x2, x); y1 = Math.min(y1, y); y2 = Math.max(y2, y)
      }
      this.lengths.push(length)
      this.bounds.push(x1, y1, x2, y2)
    }
  }

  /** Draws once, and tells whether something moves. */
  draw(canvas: HTMLCanvasElement, tree: LiveTree, v: View, boxes: boolean, selected: number, still: boolean): boolean {
    const p = tree.picture
    const g = canvas.getContext('2d')
    if (!p || !g) return false
    this.measure(tree)
    const scale = devicePixelRatio || 1
    if (canvas.width !== Math.round(v.w * scale) || canvas.height !== Math.round(v.h * scale)) {
      canvas.width = Math.round(v.w * scale)
      canvas.height = Math.round(v.h * scale)
    }
    const c = colors()
    g.setTransform(scale, 0, 0, scale, 0, 0)
    g.clearRect(0, 0, v.w, v.h)
    g.setTransform(scale * v.zoom, 0, 0, scale * v.zoom, scale * v.x, scale * v.y)
    const left = -v.x / v.zoom
    const top = -v.y / v.zoom
    const right = left + v.w / v.zoom
    const bottom = top + v.h / v.zoom
    this.nodes(g, c, tree, v.zoom, [left, top, right, bottom], boxes, selected)
    const moves = this.edges(g, c, tree, v.zoom, [left, top, right, bottom], still)
    return moves
  }

  private nodes(g: CanvasRenderingContext2D, c: Colors, tree: LiveTree, zoom: number, seen: number[], boxes: boolean, selected: number): void {
    const n = tree.picture?.nodes
    const [left = 0, top = 0, right = 0, bottom = 0] = seen
    if (!n) return
    for (let i = 0; i < n.id.length; i++) {
      const x = n.x[i] ?? 0
      const y = n.y[i] ?? 0
      const w = n.w[i] ?? 0
      const h = n.h[i] ?? 0
      if (x > right || y > bottom || x + w < left || y + h < top) continue
      const frame = n.frame[i]
      if (!frame && !boxes) continue
      const status = tree.statusOf(i)
      g.beginPath()
      if (zoom > 0.15) g.roundRect(x, y, w, h, frame ? 14 : 9)
      else g.rect(x, y, w, h)
      g.fillStyle = (frame ? c['--frame'] : zoom < 0.3 ? c[tone[status] ?? '--idle'] : c['--card']) ?? ''
      g.fill()
      g.lineWidth = i === selected ? 4 / zoom : frame ? 1 : 1.5
      g.strokeStyle = c[i === selected ? '--accent' : frame ? '--line' : tone[status] ?? '--line'] ?? ''
      g.stroke()
      if (!frame && zoom >= 0.3) {
        g.fillStyle = c['--text'] ?? ''
        g.font = '600 13px system-ui, sans-serif'
        g.textAlign = 'left'
        g.fillText(n.label[i] ?? '', x + 12, y + 24, w - 20)
      }
    }
  }

  private edges(g: CanvasRenderingContext2D, c: Colors, tree: LiveTree, zoom: number, seen: number[], still: boolean): boolean {
    const e = tree.picture?.edges
    const [left = 0, top = 0, right = 0, bottom = 0] = seen
    if (!e) return false
    const now = performance.now()
    let moves = false
    for (let i = 0; i < e.from.length; i++) {
      const at = e.points[i] ?? []
      const b = 4 * i
      if ((this.bounds[b] ?? 0) > right || (this.bounds[b + 1] ?? 0) > bottom || (this.bounds[b + 2] ?? 0) < left || (this.bounds[b + 3] ?? 0) < top) continue
      const waiting = e.waiting[i] ?? 0
      const limit = e.limit[i] ?? 0
      const color = c[fill(waiting, limit)] ?? ''
      g.beginPath()
      g.moveTo(at[0] ?? 0, at[1] ?? 0)
      for (let k = 2; k + 1 < at.length; k += 2) {
        const x = at[k] ?? 0
        const y = at[k + 1] ?? 0
        if (k + 3 < at.length && zoom > 0.25) g.arcTo(x, y, at[k + 2] ?? 0, at[k + 3] ?? 0, 7)
        else g.lineTo(x, y)
      }
      g.strokeStyle = color
      g.lineWidth = waiting > 0 ? 2.4 : 1.6
      g.setLineDash(e.spawn[i] ? [5, 4] : [])
      g.stroke()
      g.setLineDash([])
      const speed = tree.rateOf(i, now)
      if (speed > 0) moves = true
      if (speed > 0 && !still && zoom > 0.2) this.dots(g, c, at, this.lengths[i] ?? 0, speed, now)
      if (zoom >= 0.45 && !e.spawn[i]) this.badge(g, c, at, e.total[i] ?? 0, waiting, limit, speed, color)
    }
    return moves
  }

  private dots(g: CanvasRenderingContext2D, c: Colors, at: number[], length: number, speed: number, now: number): void {
    const n = Math.min(6, Math.max(1, Math.ceil(Math.log2(speed + 1) / 1.5)))
    const phase = ((now / 1000) * 90 / Math.max(40, length)) % 1
    g.fillStyle = c['--run'] ?? ''
    for (let k = 0; k < n; k++) {
      const [x, y] = along(at, length, (phase + k / n) % 1)
      g.beginPath()
      g.arc(x, y, 3.6, 0, 7)
      g.fill()
    }
  }

  /** What waits, of how many, and how fast they pass, in front of the end of a wire. */
  private badge(g: CanvasRenderingContext2D, c: Colors, at: number[], total: number, waiting: number, limit: number, speed: number, color: string): void {
    const x = (at.at(-2) ?? 0) - 8
    const y = at.at(-1) ?? 0
    const text = waiting > 0 || limit > 0 ? `${short(waiting)}${limit > 0 ? '/' + short(limit) : ''}` : ''
    g.font = '600 11px system-ui, sans-serif'
    g.textAlign = 'right'
    const w = text ? g.measureText(text).width + 12 : 0
    if (text) {
      g.beginPath()
      g.roundRect(x - w, y - 9, w, 18, 6)
      g.fillStyle = c['--card'] ?? ''
      g.fill()
      g.strokeStyle = color
      g.lineWidth = 1.2
      g.stroke()
      if (limit > 0) {
        g.fillStyle = color
        g.fillRect(x - w + 4, y + 5, Math.min(1, waiting / limit) * (w - 8), 2)
      }
      g.fillStyle = c['--text'] ?? ''
      g.fillText(text, x - 6, y + 3.5)
    }
    const start = at[0] ?? 0
    const said = `${total > 0 ? short(total) : ''}${speed > 0 ? ' · ' + perSecond(speed) : ''}`
    g.font = '11px system-ui, sans-serif'
    if (said && (at[3] !== y || x - w - start > g.measureText(said).width + 10)) { // else it would be under the badge
      g.textAlign = 'left'
      g.fillStyle = c['--faint'] ?? ''
      g.fillText(said, start + 9, (at[1] ?? 0) - 5)
    }
  }
}
