import { rate as perSecond, short } from '../format'
import { seen, type Geometry, type View } from './geometry'
import type { LiveTree } from './live'
import { fill, fitting, palette, tone, width, type Color } from './palette'

type Pen = CanvasRenderingContext2D

/** Fits a canvas to a view, and returns its pen, which draws in the coordinates of the picture. */
export function pen(canvas: HTMLCanvasElement, v: View): Pen | null {
  const g = canvas.getContext('2d')
  if (!g) return null
  const scale = devicePixelRatio || 1
  const [w, h] = [Math.round(v.w * scale), Math.round(v.h * scale)]
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h]
  g.setTransform(1, 0, 0, 1, 0, 0)
  g.clearRect(0, 0, w, h)
  g.setTransform(scale * v.zoom, 0, 0, scale * v.zoom, scale * v.x, scale * v.y)
  return g
}

/** Adds a wire to the path of a pen. */
export function trace(g: Pen, at: number[], round: boolean): void {
  g.moveTo(at[0] ?? 0, at[1] ?? 0)
  for (let k = 2; k + 1 < at.length; k += 2) {
    const x = at[k] ?? 0
    const y = at[k + 1] ?? 0
    if (round && k + 3 < at.length) g.arcTo(x, y, at[k + 2] ?? 0, at[k + 3] ?? 0, 7)
    else g.lineTo(x, y)
  }
}

/** What goes together: things of one look are one path, as each change of color and each path costs. */
class Looks {
  private readonly all = new Map<string, number[]>()
  add(look: string, i: number): void {
    const some = this.all.get(look)
    if (some) some.push(i)
    else this.all.set(look, [i])
  }
  each(fn: (look: string, members: number[]) => void): void { this.all.forEach((members, look) => fn(look, members)) }
}

/** Draws what only changes with the tree: frames, wires and what waits on them; and boxes, when they are many. */
export function draw(canvas: HTMLCanvasElement, tree: LiveTree, geo: Geometry, v: View, boxes: boolean): void {
  const g = pen(canvas, v)
  if (!g) return
  const c = palette()
  const all = seen(v)
  const frames: number[] = []
  const nodes: number[] = []
  geo.nodesIn(...all, i => { if (geo.p.nodes.frame[i]) frames.push(i); else if (boxes) nodes.push(i) })
  drawFrames(g, geo, v.zoom, frames)
  if (boxes) drawBoxes(g, tree, geo, v.zoom, nodes)
  const edges: number[] = []
  geo.edgesIn(...all, e => edges.push(e))
  drawWires(g, geo, v.zoom, edges)
  if (v.zoom < 0.45) return
  const now = performance.now()
  const e = geo.p.edges
  g.font = smallBold
  for (const i of edges) if (!e.spawn[i]) badge(g, c, e.points[i] ?? [], e.waiting[i] ?? 0, e.limit[i] ?? 0)
  g.font = small
  g.textAlign = 'left'
  g.fillStyle = c['--faint']
  for (const i of edges) if (!e.spawn[i]) said(g, e.points[i] ?? [], e.total[i] ?? 0, tree.rateOf(i, now), badgeText(e.waiting[i] ?? 0, e.limit[i] ?? 0))
}

const small = '11px system-ui, sans-serif'
const smallBold = '600 11px system-ui, sans-serif'
const bold = '600 13px system-ui, sans-serif'

function drawFrames(g: Pen, geo: Geometry, zoom: number, frames: number[]): void {
  const n = geo.p.nodes
  const c = palette()
  g.lineWidth = 1
  g.fillStyle = c['--frame']
  g.strokeStyle = c['--line']
  for (const i of frames) {
    g.beginPath()
    outline(g, n.x[i] ?? 0, n.y[i] ?? 0, n.w[i] ?? 0, n.h[i] ?? 0, zoom > 0.15 ? 14 : 0)
    g.fill()
    g.stroke()
  }
}

function outline(g: Pen, x: number, y: number, w: number, h: number, round: number): void {
  if (round) g.roundRect(x, y, w, h, round)
  else g.rect(x, y, w, h)
}

/** Far away a box is a spot in the color of its status, nearer it has a border and a name. */
function drawBoxes(g: Pen, tree: LiveTree, geo: Geometry, zoom: number, nodes: number[]): void {
  const n = geo.p.nodes
  const c = palette()
  const near = zoom >= 0.3
  const looks = new Looks()
  for (const i of nodes) looks.add(tone(tree.lookOf(i), near ? '--line' : '--idle'), i)
  looks.each((look, members) => {
    g.beginPath()
    for (const i of members) outline(g, n.x[i] ?? 0, n.y[i] ?? 0, n.w[i] ?? 0, n.h[i] ?? 0, zoom > 0.15 ? 9 : 0)
    g.fillStyle = near ? c['--card'] : c[look as Color]
    g.fill()
    if (!near) return
    g.lineWidth = 1.5
    g.strokeStyle = c[look as Color]
    g.stroke()
  })
  if (!near) return
  g.fillStyle = c['--text']
  g.font = bold
  g.textAlign = 'left'
  for (const i of nodes) g.fillText(fitting(g, `${n.dead[i] ? `† ${n.dead[i]} ` : ''}${n.label[i] ?? ''}`, (n.w[i] ?? 0) - 20), (n.x[i] ?? 0) + 12, (n.y[i] ?? 0) + 24)
}

function drawWires(g: Pen, geo: Geometry, zoom: number, edges: number[]): void {
  const e = geo.p.edges
  const c = palette()
  const looks = new Looks()
  for (const i of edges) {
    const waiting = e.waiting[i] ?? 0
    looks.add(`${fill(waiting, e.limit[i] ?? 0)} ${waiting > 0 ? 2.4 : 1.6} ${e.spawn[i] ? 5 : 0}`, i)
  }
  looks.each((look, members) => {
    const [color = '', wide, dash] = look.split(' ')
    g.beginPath()
    for (const i of members) trace(g, e.points[i] ?? [], zoom > 0.25)
    g.strokeStyle = c[color as Color]
    g.lineWidth = Math.max(Number(wide), 0.6 / zoom)
    g.setLineDash(dash === '5' && zoom > 0.1 ? [5, 4] : [])
    g.stroke()
  })
  g.setLineDash([])
}

const badgeText = (waiting: number, limit: number): string => waiting > 0 || limit > 0 ? `${short(waiting)}${limit > 0 ? '/' + short(limit) : ''}` : ''

/** How long the badge at the end of a wire is, with the place around it. */
export function badgeWidth(waiting: number, limit: number): number {
  const text = badgeText(waiting, limit)
  return text ? 7 * text.length + 24 : 0
}

/** What waits, and of how many, in front of the end of a wire. */
function badge(g: Pen, c: Record<Color, string>, at: number[], waiting: number, limit: number): void {
  const text = badgeText(waiting, limit)
  if (!text) return
  const color = c[fill(waiting, limit)]
  const x = (at.at(-2) ?? 0) - 8
  const y = at.at(-1) ?? 0
  const w = width(g, text) + 12
  g.beginPath()
  g.roundRect(x - w, y - 9, w, 18, 6)
  g.fillStyle = c['--card']
  g.fill()
  g.strokeStyle = color
  g.lineWidth = 1.2
  g.stroke()
  if (limit > 0) {
    g.fillStyle = color
    g.fillRect(x - w + 4, y + 5, Math.min(1, waiting / limit) * (w - 8), 2)
  }
  g.textAlign = 'right'
  g.fillStyle = c['--text']
  g.fillText(text, x - 6, y + 3.5)
}

/** How many have passed, and how fast they do, behind the beginning of a wire. */
function said(g: Pen, at: number[], total: number, speed: number, before: string): void {
  const text = `${total > 0 ? short(total) : ''}${speed > 0 ? ' · ' + perSecond(speed) : ''}`
  if (!text) return
  const start = at[0] ?? 0
  const end = (at.at(-2) ?? 0) - 8 - (before ? width(g, before) + 12 : 0)
  if (at[3] !== at.at(-1) || end - start > width(g, text) + 10) g.fillText(text, start + 9, (at[1] ?? 0) - 5) // else it would be under the badge
}
