import type { Picture } from '../types'

export interface View { x: number; y: number; zoom: number; w: number; h: number }

/** Something in the picture: a box, a wire, or nothing (-1). */
export interface Spot { node: number; edge: number }

/** What is known of the places of one picture until its shape changes. */
export class Geometry {
  readonly bounds: Float64Array // x1, y1, x2, y2 of each wire
  readonly lengths: Float64Array
  readonly edgesOf: number[][] // of each box, those that lead to it first
  readonly byId = new Map<string, number>()

  constructor(readonly p: Picture) {
    this.bounds = new Float64Array(4 * p.edges.from.length)
    this.lengths = new Float64Array(p.edges.from.length)
    this.edgesOf = p.nodes.id.map(() => [])
    p.nodes.id.forEach((id, i) => this.byId.set(id, i))
    p.edges.points.forEach((at, e) => this.measure(at, e))
    p.edges.to.forEach((to, e) => this.edgesOf[to]?.push(e))
    p.edges.from.forEach((from, e) => this.edgesOf[from]?.push(e))
  }

  private measure(at: number[], e: number): void {
    let length = 0
    let [x1, y1, x2, y2] = [Infinity, Infinity, -Infinity, -Infinity]
    for (let i = 0; i + 1 < at.length; i += 2) {
      const x = at[i] ?? 0
      const y = at[i + 1] ?? 0
      if (i) length += Math.abs(x - (at[i - 2] ?? 0)) + Math.abs(y - (at[i - 1] ?? 0))
      x1 = Math.min(x1, x); x2 = Math.max(x2, x); y1 = Math.min(y1, y); y2 = Math.max(y2, y)
    }
    this.lengths[e] = length
    this.bounds.set([x1, y1, x2, y2], 4 * e)
  }

  /** Wires of which a part may be between these. */
  edgesIn(left: number, top: number, right: number, bottom: number, fn: (edge: number) => void): void {
    const b = this.bounds
    for (let e = 0, k = 0; k < b.length; e++, k += 4) {
      if ((b[k] ?? 0) <= right && (b[k + 1] ?? 0) <= bottom && (b[k + 2] ?? 0) >= left && (b[k + 3] ?? 0) >= top) fn(e)
    }
  }

  /** Boxes and frames between these, frames before what is in them. */
  nodesIn(left: number, top: number, right: number, bottom: number, fn: (node: number) => void): void {
    const { x, y, w, h } = this.p.nodes
    for (let i = 0; i < x.length; i++) {
      const nx = x[i] ?? 0
      const ny = y[i] ?? 0
      if (nx <= right && ny <= bottom && nx + (w[i] ?? 0) >= left && ny + (h[i] ?? 0) >= top) fn(i)
    }
  }

  /** The box at a place, or the wire next to it, at most so far away. */
  at(x: number, y: number, reach: number): Spot {
    let node = -1
    this.nodesIn(x, y, x, y, i => { if (!this.p.nodes.frame[i]) node = i })
    if (node >= 0) return { node, edge: -1 }
    let edge = -1
    let least = reach
    this.edgesIn(x - reach, y - reach, x + reach, y + reach, e => {
      const d = distance(this.p.edges.points[e] ?? [], x, y)
      if (d < least) [edge, least] = [e, d]
    })
    return { node: -1, edge }
  }

  /** How many boxes are in view. */
  count(v: View): number {
    let n = 0
    this.nodesIn(...seen(v), i => { if (!this.p.nodes.frame[i]) n++ })
    return n
  }

  /** The nearest box in a direction. */
  neighbor(from: number, dx: number, dy: number): number {
    const n = this.p.nodes
    if (from < 0) return n.frame.findIndex(f => !f)
    const x = (n.x[from] ?? 0) + (n.w[from] ?? 0) / 2
    const y = (n.y[from] ?? 0) + (n.h[from] ?? 0) / 2
    let [best, least] = [-1, Infinity]
    for (let i = 0; i < n.x.length; i++) {
      if (i === from || n.frame[i]) continue
      const a = (n.x[i] ?? 0) + (n.w[i] ?? 0) / 2 - x
      const b = (n.y[i] ?? 0) + (n.h[i] ?? 0) / 2 - y
      const ahead = a * dx + b * dy
      const far = ahead + 2 * (Math.abs(a * dy) + Math.abs(b * dx))
      if (ahead > 4 && far < least) [best, least] = [i, far]
    }
    return best
  }
}

/** The part of the picture that a view shows: left, top, right, bottom. */
export function seen(v: View): [number, number, number, number] {
  return [-v.x / v.zoom, -v.y / v.zoom, (v.w - v.x) / v.zoom, (v.h - v.y) / v.zoom]
}

/** How far a place is from a wire, whose parts are level or upright. */
function distance(at: number[], x: number, y: number): number {
  let least = Infinity
  for (let i = 0; i + 3 < at.length; i += 2) {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = [at[i], at[i + 1], at[i + 2], at[i + 3]]
    const dx = Math.max(Math.min(x1, x2) - x, 0, x - Math.max(x1, x2))
    const dy = Math.max(Math.min(y1, y2) - y, 0, y - Math.max(y1, y2))
    least = Math.min(least, Math.hypot(dx, dy))
  }
  return least
}
