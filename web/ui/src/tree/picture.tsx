import { ReactFlow, ReactFlowProvider, useReactFlow, useStoreApi, type Viewport } from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent as KeyPress, type MouseEvent as Click, type ReactNode } from 'react'
import { go, link } from '../route'
import { Geometry, seen, type Spot, type View } from './geometry'
import type { LiveTree } from './live'
import { Minimap } from './minimap'
import { JobBox, TreeContext, type JobNode } from './node'
import { Pick } from './pick'
import { Selected, wireWords } from './selected'
import { Stage } from './stage'

const nodeTypes = { job: JobBox }
const none: JobNode[] = []

// More boxes than this in view are drawn on the canvas, and fewer than the other by the document again.
const many = 100
const few = 80
// In a larger picture the view jumps: to glide is a dozen pictures, each of them with other boxes.
const large = 1000

export interface PictureProps { tree: LiveTree; shape: number; search: string; toggle: (id: string) => void; follow: boolean; path: number[] }

/** The tree as a picture. Boxes are elements while there are few in view; wires, and many boxes, are on canvases below them. */
export function Picture(props: PictureProps): ReactNode {
  const box = useRef<HTMLDivElement>(null)
  const [size, setSize] = useState<[number, number] | null>(null)
  useEffect(() => {
    if (!box.current) return
    const watch = new ResizeObserver(([e]) => { if (e) setSize([e.contentRect.width, e.contentRect.height]) })
    watch.observe(box.current)
    return () => watch.disconnect()
  }, [])
  return <div className="canvas" ref={box}>{size && size[0] > 0 && <ReactFlowProvider><Flow {...props} w={size[0]} h={size[1]} /></ReactFlowProvider>}</div>
}

/** What the view keeps to when the tree gets another shape: its beginning, all of it once that was asked for, or what the user moved to. */
type Kept = 'first' | 'all' | 'own'

/** Where the last picture of the page was looked at, kept when it is shown again. */
let lastView: { root: string; viewport: Viewport; kept: Kept } | null = null

/** How far and how near one can look, and how much nearer one press goes. */
const [farthest, nearest, step] = [0.01, 2, 1.2] as const

/** Narrower than this is a phone. */
const narrow = 700

function fitted(x: number, y: number, w: number, h: number, into: number, high: number): Viewport {
  const edge = into < narrow ? 16 : 60 // on a phone there is little to give away
  const zoom = Math.min(1.2, Math.max(farthest, Math.min((into - edge) / Math.max(1, w), (high - 60) / Math.max(1, h))))
  return whole({ zoom, x: (into - w * zoom) / 2 - x * zoom, y: (high - h * zoom) / 2 - y * zoom })
}

/** At whole pixels, so that what is drawn is moved as it is. */
const whole = (v: Viewport): Viewport => ({ zoom: v.zoom, x: Math.round(v.x), y: Math.round(v.y) })

const wholeView = (geo: Geometry, w: number, h: number): Viewport => fitted(0, 0, geo.p.w, geo.p.h, w, h)

/** The least zoom at which all that is in a box can be read. */
const readable = 0.6

/** What is seen at first: all of it; of what could not be read then, on a phone, where it begins: the first box at the left. */
function firstView(geo: Geometry, w: number, h: number): Viewport {
  const all = wholeView(geo, w, h)
  if (w >= narrow || all.zoom >= readable) return all
  const n = geo.p.nodes
  const first = n.x.reduce((best, x, i) => !n.frame[i] && (best < 0 || x < (n.x[best] ?? 0)) ? i : best, -1)
  const [wide, high] = [geo.p.w * readable, geo.p.h * readable]
  const middle = h / 2 - ((n.y[first] ?? 0) + (n.h[first] ?? 0) / 2) * readable
  return whole({ zoom: readable, x: wide <= w - 16 ? (w - wide) / 2 : 8, y: high <= h - 60 ? (h - high) / 2 : Math.min(30, Math.max(h - 30 - high, middle)) })
}

/** From farther away than this boxes have their name alone, in large letters. */
const small = 0.45

/** The boxes in and around a view, for the document: what is farther off is made when the view comes near. */
class Window {
  readonly nodes: JobNode[] = []
  private readonly rect: [number, number, number, number]
  constructor(geo: Geometry, v: View) {
    const [left, top, right, bottom] = seen(v)
    const [w, h] = [(right - left) / 8, (bottom - top) / 8]
    this.rect = [left - w, top - h, right + w, bottom + h]
    const n = geo.p.nodes
    geo.nodesIn(...this.rect, i => this.nodes.push({
      id: n.id[i] ?? '', type: 'job', position: { x: n.x[i] ?? 0, y: n.y[i] ?? 0 }, data: { index: i }, width: n.w[i] ?? 0, height: n.h[i] ?? 0,
      zIndex: n.frame[i] ? 0 : 1, className: n.frame[i] ? 'frame-node' : '',
    }))
  }
  holds(v: View): boolean {
    const [left, top, right, bottom] = seen(v)
    const [l, t, r, b] = this.rect
    return left >= l && top >= t && right <= r && bottom <= b
  }
}

/** What was selected, in a picture of another shape: the same box or wire, if it is there. */
function moved(at: Spot, from: Geometry, to: Geometry): Spot {
  const node = (i: number): number => to.byId.get(from.p.nodes.id[i] ?? '') ?? -1
  if (at.node >= 0) return { node: node(at.node), edge: -1 }
  if (at.edge < 0) return at
  const [a, b] = [from.p.edges, to.p.edges]
  const [start, end] = [node(a.from[at.edge] ?? -1), node(a.to[at.edge] ?? -1)]
  return { node: -1, edge: b.from.findIndex((f, e) => f === start && b.to[e] === end && b.from_port[e] === a.from_port[at.edge] && b.to_port[e] === a.to_port[at.edge]) }
}

/** The stage with its pick, kept while the tree changes its shape. */
function useStage(tree: LiveTree, shape: number, w: number, h: number): { geo: Geometry; stage: Stage; pick: Pick; start: Viewport } {
  const geo = useMemo(() => new Geometry(tree.picture ?? empty), [tree, shape]) // eslint-disable-line react-hooks/exhaustive-deps
  const [first] = useState(() => {
    const start = lastView?.root === geo.p.root ? lastView.viewport : firstView(geo, w, h)
    return { stage: new Stage(tree, geo, { ...start, w, h }), pick: new Pick(), start }
  })
  const { stage, pick } = first
  const before = useRef(geo)
  useEffect(() => {
    if (before.current !== geo) pick.set(moved(pick.get(), before.current, geo))
    before.current = geo
    stage.shaped(geo)
  }, [geo, stage, pick])
  useEffect(() => pick.subscribe(() => stage.mark(pick.get())), [stage, pick])
  return { geo, ...first }
}

/** The view of another shape of the tree in which one box has the place that it had: the one that was opened or folded, the selected one,
 * or else the one nearest to the middle; only boxes in view count. */
function steady(from: Geometry, to: Geometry, v: View, asked: string, picked: number): Viewport {
  const [a, b] = [from.p.nodes, to.p.nodes]
  const [left, top, right, bottom] = seen(v)
  let best = { far: Infinity, x: 0, y: 0 }
  const look = (i: number, n: number, far: number): void => {
    if (i >= 0 && n >= 0 && far < best.far) best = { far, x: (a.x[i] ?? 0) - (b.x[n] ?? 0), y: (a.y[i] ?? 0) - (b.y[n] ?? 0) }
  }
  for (const id of [a.id[opener(from, asked)], b.id[opener(to, asked)]]) look(from.byId.get(id ?? '') ?? -1, to.byId.get(id ?? '') ?? -1, -2)
  from.nodesIn(left, top, right, bottom, i => {
    const n = to.byId.get(a.id[i] ?? '') ?? -1
    const away = Math.hypot((a.x[i] ?? 0) + (a.w[i] ?? 0) / 2 - (left + right) / 2, (a.y[i] ?? 0) + (a.h[i] ?? 0) / 2 - (top + bottom) / 2)
    look(i, n, n === picked ? -1 : a.frame[i] ? away + right - left : away)
  })
  return whole({ zoom: v.zoom, x: v.x + best.x * v.zoom, y: v.y + best.y * v.zoom })
}

/** The box that opens or folds something, by the ID of that. */
const opener = (geo: Geometry, asked: string): number => asked ? geo.p.nodes.fold.findIndex(f => f.split(/ (.*)/s)[1] === asked) : -1

/** How much larger texts of boxes are, so that they can be read from farther away: as much as has place in a box. */
const enlarged = (zoom: number): string => (Math.round(10 * Math.min(1.4, Math.max(1, 0.85 / zoom))) / 10).toString()

const empty = { nodes: { id: [], x: [], y: [], w: [], h: [], frame: [] }, edges: { from: [], to: [], points: [] }, w: 1, h: 1 } as never

function Flow({ tree, shape, search, toggle, follow, path, w, h }: PictureProps & { w: number; h: number }): ReactNode {
  const { geo, stage, pick, start } = useStage(tree, shape, w, h)
  const [shown, setShown] = useState<{ far: boolean; window: Window | null }>({ far: false, window: null })
  const flow = useReactFlow()
  const store = useStoreApi()
  const box = useRef<HTMLDivElement>(null)
  const base = useRef<HTMLCanvasElement>(null)
  const top = useRef<HTMLCanvasElement>(null)
  const kept = useRef<Kept>(lastView?.root === geo.p.root ? lastView.kept : 'first')
  const drawn = useRef(geo)
  const asked = useRef('') // what was opened or folded
  const gliding = useRef<Viewport | null>(null) // where to, so that another shape of the tree does not end it halfway
  const watchers = useRef(new Set<(v: View) => void>())
  const look = useCallback((v: Viewport) => {
    const view = { x: v.x, y: v.y, zoom: v.zoom, w, h }
    stage.far = geo.count(view) > (stage.far ? few : many)
    const far = stage.far
    setShown(now => {
      if (far) return now.far ? now : { far, window: null }
      return !now.far && now.window?.holds(view) && now.window.nodes.length < 4 * many ? now : { far, window: new Window(geo, view) }
    })
    stage.moved(view)
    box.current?.style.setProperty('--large', enlarged(v.zoom))
    box.current?.toggleAttribute('data-small', v.zoom < small)
    for (const fn of watchers.current) fn(view)
    if (tree.picture && kept.current !== 'first') lastView = { root: tree.picture.root, viewport: v, kept: kept.current }
  }, [tree, geo, stage, w, h])
  const watch = useCallback((fn: (v: View) => void) => {
    watchers.current.add(fn)
    fn(stage.view)
    return () => { watchers.current.delete(fn) }
  }, [stage])
  useEffect(() => { // another shape, or another size of the page
    setShown(now => ({ ...now, window: null }))
    const now = { ...stage.view, ...gliding.current }
    const next = kept.current === 'all' ? wholeView(geo, w, h) : kept.current === 'first' ? firstView(geo, w, h) : steady(drawn.current, geo, now, asked.current, pick.get().node)
    if (drawn.current !== geo) asked.current = ''
    drawn.current = geo
    gliding.current = null
    void flow.setViewport(next)
    look(next)
  }, [geo, look, stage, pick, flow, w, h])
  useEffect(() => base.current && top.current ? stage.start(base.current, top.current) : undefined, [stage])
  useEffect(() => stage.mark({ path }), [stage, path])
  const glide = useCallback((to: Viewport, keep: Kept, duration: number) => {
    kept.current = keep
    gliding.current = to
    void flow.setViewport(to, { duration: geo.p.nodes.id.length > large ? 0 : duration }).then(() => { if (gliding.current === to) gliding.current = null })
  }, [flow, geo])
  const center = useCallback((x: number, y: number, zoom: number, duration: number) => {
    glide(whole({ zoom, x: w / 2 - x * zoom, y: h / 2 - y * zoom }), 'own', duration)
  }, [glide, w, h])
  const nearer = useCallback((by: number) => {
    const v = gliding.current ?? stage.view
    center((w / 2 - v.x) / v.zoom, (h / 2 - v.y) / v.zoom, Math.min(nearest, Math.max(farthest, v.zoom * by)), 100)
  }, [center, stage, w, h])
  const show = useCallback((i: number, zoom?: number) => { // without a zoom only if it is out of view
    const n = geo.p.nodes
    const [left, top, right, bottom] = seen(stage.view)
    const [x, y, nw, nh] = [n.x[i] ?? 0, n.y[i] ?? 0, n.w[i] ?? 0, n.h[i] ?? 0]
    kept.current = 'own'
    if (zoom === undefined && x >= left && y >= top && x + nw <= right && y + nh <= bottom) return
    center(x + nw / 2, y + nh / 2, zoom ?? stage.view.zoom, 150)
  }, [center, geo, stage])
  useSearch(geo, search, pick, stage, show)
  useFollow(follow, tree, geo, pick, stage, show)
  const fit = useCallback(() => glide(wholeView(geo, w, h), 'all', 150), [glide, geo, w, h])
  const open = useCallback((i: number) => { const id = geo.p.nodes.job[i]; if (id) go(link('job', id)) }, [geo])
  const clicked = useCallback((_: Click, n: JobNode) => pick.set({ node: n.data.index }), [pick])
  const doubled = useCallback((_: Click, n: JobNode) => open(n.data.index), [open])
  const place = useRef<DOMRect | null>(null) // asked for once for each visit of the pointer: it makes the browser lay out the page
  const spot = useCallback((e: Click): Spot => {
    const at = place.current ??= store.getState().domNode?.getBoundingClientRect() ?? null
    const v = stage.view
    if (!at) return { node: -1, edge: -1 }
    const found = geo.at((e.clientX - at.left - v.x) / v.zoom, (e.clientY - at.top - v.y) / v.zoom, 7 / v.zoom)
    return stage.far ? found : { ...found, node: -1 }
  }, [geo, stage, store])
  const tip = useRef<HTMLDivElement>(null)
  const pointed = useCallback((e: Click) => {
    const edge = e.buttons ? -1 : spot(e).edge // who pulls the picture does not point at it
    if (stage.marks.over !== edge) stage.mark({ over: edge })
    const el = tip.current
    const at = place.current
    if (!el || !at) return
    if (el.hidden !== edge < 0) el.hidden = edge < 0
    if (edge < 0) return
    el.textContent = wireWords(tree, edge)
    el.style.transform = `translate(${Math.min(e.clientX - at.left + 14, w - 300)}px, ${e.clientY - at.top + 16}px)`
  }, [spot, stage, tree, w])
  const away = useCallback(() => { place.current = null; if (stage.marks.over >= 0) stage.mark({ over: -1 }); if (tip.current) tip.current.hidden = true }, [stage])
  const press = useCallback((e: Click) => { place.current = null; pick.set(spot(e)) }, [pick, spot])
  useEffect(() => { place.current = null }, [w, h])
  const key = (e: KeyPress): void => {
    if (e.target instanceof HTMLInputElement || e.ctrlKey || e.metaKey || e.altKey) return
    const dir = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[e.key]
    const { node, edge } = pick.get()
    if (dir) {
      e.preventDefault()
      const next = geo.neighbor(node >= 0 ? node : edge >= 0 ? geo.p.edges.to[edge] ?? -1 : -1, dir[0] ?? 0, dir[1] ?? 0)
      if (next >= 0) { pick.set({ node: next }); show(next) }
    } else if (e.key === 'e' || e.key === 'E') {
      const next = nextWire(geo, pick.get(), e.key === 'E')
      if (next >= 0) { pick.set({ edge: next }); show(geo.p.edges.to[next] ?? -1) }
    } else if (e.key === 'Enter' && e.target === e.currentTarget) open(node >= 0 ? node : geo.p.edges.to[edge] ?? -1)
    else if (e.key === 'o') { const id = (geo.p.nodes.fold[node] ?? '').split(/ (.*)/s)[1]; if (id) state.toggle(id) }
    else if (e.key === 'f') fit()
    else if (e.key === '+' || e.key === '=') nearer(step)
    else if (e.key === '-') nearer(1 / step)
    else if (e.key === 'Escape') pick.set({})
  }
  const state = useMemo(() => ({ tree, pick, toggle: (id: string) => { asked.current = id; toggle(id) } }), [tree, pick, toggle])
  return (
    <TreeContext.Provider value={state}>
      <div className="stage" ref={box} data-path={path.length} role="application" aria-label="The tree as a picture; the list shows the same" tabIndex={0} onKeyDown={key} onPointerLeave={away}>
        <canvas ref={base} aria-hidden="true" data-far={shown.far} />
        <canvas ref={top} aria-hidden="true" />
        <ReactFlow nodes={shown.window?.nodes ?? none} nodeTypes={nodeTypes} defaultViewport={start} minZoom={farthest} maxZoom={nearest}
          nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} elementsSelectable={false} edgesFocusable={false} disableKeyboardA11y zoomOnDoubleClick={false}
          onNodeClick={clicked} onNodeDoubleClick={doubled} onNodeMouseEnter={away} onViewportChange={look} onMove={e => { if (e) { kept.current = 'own'; gliding.current = null } }}
          onPaneClick={press} onPaneMouseMove={pointed} proOptions={{ hideAttribution: true }} />
        <div className="tip" ref={tip} hidden role="presentation" />
        <div className="zoom row"><button type="button" aria-label="Nearer" onClick={() => nearer(step)}>+</button><button type="button" aria-label="Farther" onClick={() => nearer(1 / step)}>−</button><button type="button" aria-label="All of it" onClick={fit}>⤢</button></div>
        <Minimap tree={tree} geo={geo} watch={watch} to={(x, y) => center(x, y, stage.view.zoom, 0)} />
        <Selected tree={tree} pick={pick} toggle={state.toggle} show={show} />
      </div>
    </TreeContext.Provider>
  )
}

/** The next wire of the box that is selected, or of the one that the selected wire leads to when its own are through. */
function nextWire(geo: Geometry, at: Spot, back: boolean): number {
  const e = geo.p.edges
  if (at.node >= 0) return geo.edgesOf[at.node]?.at(back ? -1 : 0) ?? -1
  const n = e.from.length
  return n ? (Math.max(at.edge, back ? 0 : -1) + (back ? n - 1 : 1)) % n : -1
}

/** Goes to the first box that is called so. */
function useSearch(geo: Geometry, search: string, pick: Pick, stage: Stage, show: (i: number, zoom?: number) => void): void {
  useEffect(() => {
    const want = search.trim().toLowerCase()
    const n = geo.p.nodes
    const at = want ? n.id.findIndex((id, i) => id.toLowerCase().includes(want) || n.type[i]?.toLowerCase().includes(want)) : -1
    if (at >= 0) { pick.set({ node: at }); show(at, Math.max(0.7, stage.view.zoom)) }
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [search])
}

const stay = 2500 // ms in one place, so that people can see something

/** Keeps in view what is selected, wherever it moves to; or else goes to where the most messages move. */
function useFollow(follow: boolean, tree: LiveTree, geo: Geometry, pick: Pick, stage: Stage, show: (i: number, zoom?: number) => void): void {
  useEffect(() => {
    if (!follow) return
    let shown = -1
    let at = 0
    const step = (): void => {
      const now = performance.now()
      const own = pick.get().node
      const next = own >= 0 ? own : busiest(tree, geo, now)
      if (next < 0 || now - at < stay) return
      const [left, top, right, bottom] = seen(stage.view)
      const n = geo.p.nodes
      const [x, y] = [(n.x[next] ?? 0) + (n.w[next] ?? 0) / 2, (n.y[next] ?? 0) + (n.h[next] ?? 0) / 2]
      const inView = x > left && x < right && y > top && y < bottom
      if (inView && (own < 0 || next === shown)) return
      shown = next
      at = now
      show(next, stage.view.zoom)
    }
    step()
    return tree.subscribe(step)
  }, [follow, tree, geo, pick, stage, show])
}

/** Where the most messages arrive now. */
function busiest(tree: LiveTree, geo: Geometry, now: number): number {
  let [best, most] = [tree.latest, 0]
  for (let e = 0; e < geo.lengths.length; e++) {
    const speed = tree.rateOf(e, now)
    if (speed > most) [best, most] = [geo.p.edges.to[e] ?? -1, speed]
  }
  return best
}
