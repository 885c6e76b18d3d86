import type { Geometry, View } from './geometry'
import type { LiveTree } from './live'
import { Motion, type Marks } from './motion'
import { draw } from './paint'
import { onPalette } from './palette'

// What is drawn when. Input comes first: while there is some, dots stand still, and a picture that takes long to draw is moved as it
// is and drawn anew at times. How often follows from what drawing costs, so that the page stays quick on slow machines.
const quiet = 150 // ms after input without other drawing
const settled = 80 // ms without movement
const dotsEvery = 40
const treeEvery = 250

/** Calls fn when the page is done with a frame: what draws on a canvas goes on behind the calls that say what to draw. */
const after = new MessageChannel()
const waiting: (() => void)[] = []
after.port1.onmessage = () => waiting.shift()?.()
function afterFrame(fn: () => void): void {
  waiting.push(fn)
  after.port2.postMessage(0)
}

class Cost {
  ms = 0
  at = -1e9
  took(began: number): void {
    this.at = performance.now()
    this.ms = 0.7 * this.ms + 0.3 * (this.at - began)
  }
}

/** Whether a picture drawn for one view does, moved, for another one for a while. */
function near(a: View, b: View): boolean {
  const scale = b.zoom / a.zoom
  return scale > 0.7 && scale < 1.5 && Math.abs(b.x - a.x * scale) < b.w / 4 && Math.abs(b.y - a.y * scale) < b.h / 4
}

/** How what was drawn for one view is moved to another one. Without another zoom it is moved by whole pixels, which is a copy and no filter. */
function shift(a: View, b: View): string {
  const scale = b.zoom / a.zoom
  const [x, y] = [b.x - a.x * scale, b.y - a.y * scale]
  return scale === 1 ? `translate(${Math.round(x)}px, ${Math.round(y)}px)` : `translate(${x}px, ${y}px) scale(${scale})`
}

/** The two canvases below the boxes, and when they are drawn. */
export class Stage {
  readonly marks: Marks = { node: -1, edge: -1, over: -1, path: [] }
  far = false
  private base: HTMLCanvasElement | null = null
  private top: HTMLCanvasElement | null = null
  private drawn: View | null = null
  private readonly motion = new Motion()
  private moves = false
  private lookedAt = 0
  private want: 'nothing' | 'values' | 'view' = 'view'
  private wantTop = true
  private inputAt = -1e9
  private movedAt = 0
  private readonly baseCost = new Cost()
  private readonly topCost = new Cost()
  private timer = 0
  private frame = 0
  private readonly still = matchMedia('(prefers-reduced-motion: reduce)').matches

  constructor(private readonly tree: LiveTree, private geo: Geometry, public view: View) {}

  /** Draws on these until what it returns is called. */
  start(base: HTMLCanvasElement, top: HTMLCanvasElement): () => void {
    this.base = base
    this.top = top
    const input = (): void => { this.inputAt = performance.now() }
    const ends = [onPalette(() => this.moved(this.view)), this.tree.subscribe(() => this.changed())]
    const kinds = ['keydown', 'pointerdown', 'wheel'] as const
    for (const k of kinds) addEventListener(k, input, { capture: true, passive: true })
    this.moved(this.view)
    return () => {
      this.base = this.top = null
      clearTimeout(this.timer)
      cancelAnimationFrame(this.frame)
      this.timer = this.frame = 0
      for (const k of kinds) removeEventListener(k, input, { capture: true })
      for (const end of ends) end()
    }
  }

  /** Another picture of the tree. */
  shaped(geo: Geometry): void {
    this.geo = geo
    this.moved(this.view)
  }

  /** Another view: what is drawn is moved at once, and drawn anew when there is time. */
  moved(view: View): void {
    this.view = view
    this.want = 'view'
    this.movedAt = performance.now()
    if (this.drawn && this.base && this.top) {
      this.base.style.transform = this.top.style.transform = shift(this.drawn, view)
    }
    this.plan()
  }

  mark(change: Partial<Marks>): void {
    Object.assign(this.marks, change)
    this.wantTop = true
    this.plan()
  }

  private changed(): void {
    if (this.want === 'nothing') this.want = 'values'
    this.plan()
  }

  private dueBase(): number {
    const { at, ms } = this.baseCost
    if (this.want === 'nothing') return Infinity
    if (this.want === 'view') return ms < 4 ? at : this.drawn && near(this.drawn, this.view) ? Math.max(this.movedAt + Math.max(settled, 6 * ms), at) : at + 3 * ms
    return Math.max(at + Math.max(treeEvery, 6 * ms), this.inputAt + quiet)
  }

  private dueTop(): number {
    const { at, ms } = this.topCost
    if (this.wantTop) return at
    return this.moves && !this.still ? Math.max(at + Math.max(dotsEvery, 8 * ms), this.inputAt + quiet) : Infinity
  }

  private plan(): void {
    if (this.frame || !this.base) return
    clearTimeout(this.timer)
    const due = Math.min(this.dueBase(), this.dueTop())
    if (due === Infinity) return
    const wait = due - performance.now()
    if (wait < 4) this.frame = requestAnimationFrame(() => this.run())
    else this.timer = window.setTimeout(() => { this.frame = requestAnimationFrame(() => this.run()) }, wait)
  }

  private look(now: number): void {
    this.lookedAt = now
    this.moves = this.motion.look(this.tree, this.geo, this.view)
  }

  /** A canvas with nothing on it is hidden: to lay it over the other one costs as much as if there were something. */
  private drawTop(top: HTMLCanvasElement, view: View): void {
    const { node, edge, over, path } = this.marks
    const bare = !this.moves && edge < 0 && over < 0 && !path.length && !(this.far && node >= 0)
    if (top.hidden && bare) return
    if (!bare) this.motion.draw(top, this.geo, view, this.marks, this.far)
    top.hidden = bare
  }

  private run(): void {
    this.frame = 0
    if (!this.base || !this.top) return
    const began = performance.now()
    const base = this.dueBase() <= began + 4
    if (base) {
      draw(this.base, this.tree, this.geo, this.view, this.far)
      this.look(began)
      this.drawn = this.view
      this.want = 'nothing'
      this.base.style.transform = this.top.style.transform = ''
    }
    if (!base && this.moves && began - this.lookedAt > 1000) {
      this.look(began)
      if (!this.moves) this.want = 'values' // the rates are gone, too
    }
    if (this.drawn) this.drawTop(this.top, this.drawn)
    this.wantTop = false
    const cost = base ? this.baseCost : this.topCost
    afterFrame(() => { cost.took(began); this.plan() })
  }
}
