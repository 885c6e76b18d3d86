import { seen, type Geometry, type View } from './geometry'
import type { LiveTree } from './live'
import { badgeWidth, pen, trace } from './paint'
import { palette } from './palette'

// At most so many wires have dots: more are a flicker, and cost.
const moving = 200

/** What is pointed at: in a heavier line above the picture. */
export interface Marks { node: number; edge: number; over: number; path: number[] }

interface Flow { at: number[]; length: number; dots: number }

/** The layer that moves, above the one that does not: dots while messages pass, and what is selected. */
export class Motion {
  private flows: Flow[] = []

  /** Notes on which wires in view messages move; tells whether on any. */
  look(tree: LiveTree, geo: Geometry, v: View): boolean {
    this.flows = []
    if (v.zoom <= 0.2) return false
    const now = performance.now()
    geo.edgesIn(...seen(v), e => {
      const speed = tree.rateOf(e, now)
      if (speed <= 0 || this.flows.length >= moving) return
      const length = (geo.lengths[e] ?? 0) - (v.zoom >= 0.45 ? badgeWidth(geo.p.edges.waiting[e] ?? 0, geo.p.edges.limit[e] ?? 0) : 0)
      if (length > 10) this.flows.push({ at: geo.p.edges.points[e] ?? [], length, dots: Math.min(6, Math.max(1, Math.ceil(Math.log2(speed + 1) / 1.5))) })
    })
    return this.flows.length > 0
  }

  draw(canvas: HTMLCanvasElement, geo: Geometry, v: View, marks: Marks, far: boolean): void {
    const g = pen(canvas, v)
    if (!g) return
    const c = palette()
    const wires = (edges: number[], wide: number, alpha: number): void => {
      if (!edges.length) return
      g.beginPath()
      for (const e of edges) trace(g, geo.p.edges.points[e] ?? [], v.zoom > 0.25)
      g.strokeStyle = c['--accent']
      g.lineWidth = Math.max(wide, wide / 2 / v.zoom)
      g.globalAlpha = alpha
      g.stroke()
      g.globalAlpha = 1
    }
    wires(marks.path, 5, 0.75)
    if (marks.over >= 0) wires([marks.over], 5, 0.35)
    if (marks.edge >= 0) wires([marks.edge], 4, 1)
    if (far && marks.node >= 0) this.box(g, geo, marks.node, v.zoom)
    this.dots(g, c['--run'])
  }

  private box(g: CanvasRenderingContext2D, geo: Geometry, i: number, zoom: number): void {
    const n = geo.p.nodes
    g.beginPath()
    g.roundRect(n.x[i] ?? 0, n.y[i] ?? 0, n.w[i] ?? 0, n.h[i] ?? 0, 9)
    g.strokeStyle = palette()['--accent']
    g.lineWidth = 4 / zoom
    g.stroke()
  }

  private dots(g: CanvasRenderingContext2D, color: string): void {
    const now = performance.now() / 1000
    g.beginPath()
    for (const f of this.flows) {
      const phase = (now * 90 / Math.max(40, f.length)) % 1
      for (let k = 0; k < f.dots; k++) dot(g, f.at, ((phase + k / f.dots) % 1) * f.length)
    }
    g.fillStyle = color
    g.fill()
  }
}

/** Adds a dot so far along a wire to the path of a pen. */
function dot(g: CanvasRenderingContext2D, at: number[], rest: number): void {
  for (let i = 0; i + 3 < at.length; i += 2) {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = [at[i], at[i + 1], at[i + 2], at[i + 3]]
    const part = Math.abs(x2 - x1) + Math.abs(y2 - y1)
    if (rest > part) { rest -= part; continue }
    const t = part ? rest / part : 0
    const [x, y] = [x1 + (x2 - x1) * t, y1 + (y2 - y1) * t]
    g.moveTo(x + 3.6, y)
    g.arc(x, y, 3.6, 0, 7)
    return
  }
}
