import { ReactFlow, ReactFlowProvider, useReactFlow, useStoreApi, type Viewport } from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore, type KeyboardEvent as KeyPress, type MouseEvent as Click, type ReactNode } from 'react'
import { num } from '../format'
import { Empty, JobLink, Problem, Status } from '../parts/basics'
import { go, link, setQuery, type Route } from '../route'
import { TreeList } from './list'
import { LiveTree } from './live'
import { JobBox, TreeContext, type JobNode } from './node'
import { Painter } from './paint'

const nodeTypes = { job: JobBox }
const none: JobNode[] = []

// More boxes than this in view are drawn on the canvas, and fewer than the other by the document again.
const many = 100
const few = 80

function folds(route: Route): string[] {
  try {
    const v: unknown = JSON.parse(route.query.get('fold') ?? '[]')
    return Array.isArray(v) ? v.filter(x => typeof x === 'string') : []
  } catch { return [] }
}

export default function TreeView({ route }: { route: Route }): ReactNode {
  return <ReactFlowProvider><Tree route={route} /></ReactFlowProvider>
}

function Tree({ route }: { route: Route }): ReactNode {
  const foldText = route.query.get('fold') ?? '[]'
  const tree = useMemo(() => new LiveTree(route.id, folds(route)), [route.id, foldText]) // eslint-disable-line react-hooks/exhaustive-deps
  useEffect(() => tree.start(), [tree])
  const epoch = useSyncExternalStore(tree.subscribe, () => tree.picture?.epoch ?? 0)
  const trouble = useSyncExternalStore(tree.subscribe, () => tree.trouble)
  const gone = useSyncExternalStore(tree.subscribe, () => tree.gone)
  const [search, setSearch] = useState('')
  const list = route.query.get('as') === 'list'
  const follow = route.query.get('follow') === '1'
  const toggle = useCallback((id: string) => {
    const now = folds(route)
    setQuery(route, { fold: JSON.stringify(now.includes(id) ? now.filter(x => x !== id) : [...now, id]) })
  }, [route])
  const p = tree.picture
  const asList = useCallback(() => setQuery(route, { as: list ? '' : 'list' }), [route, list])
  useEffect(() => {
    const key = (e: KeyboardEvent): void => {
      if (e.key === 'l' && !e.ctrlKey && !e.metaKey && !(e.target instanceof HTMLElement && e.target.matches('input, textarea, select')) && !document.querySelector('dialog[open]')) asList()
    }
    addEventListener('keydown', key)
    return () => removeEventListener('keydown', key)
  }, [asList])
  return (
    <div className="view full tree">
      <div className="head">
        <h1><a href={link('job', route.id)}><bdi>{p?.title ?? 'Tree'}</bdi></a></h1>
        <span className="faint">{p ? `${num(p.jobs)} ${p.jobs === 1 ? 'job' : 'jobs'}` : ''}</span>
        <span className="grow" />
        <input data-search="" type="search" aria-label="Search in the tree" placeholder="Search" value={search} onChange={e => setSearch(e.target.value)} />
        <label className="check"><input type="checkbox" checked={follow} onChange={e => setQuery(route, { follow: e.target.checked ? '1' : '' })} /> follow</label>
        {foldText !== '[]' && <button type="button" onClick={() => setQuery(route, { fold: '' })}>Reset folds</button>}
        <button type="button" aria-pressed={list} onClick={asList}>{list ? 'Picture' : 'List'}</button>
      </div>
      <Problem text={trouble} />
      {gone && <Empty title="There is no such tree (any more)."><p><a href={link('jobs')}>All jobs</a></p></Empty>}
      {!p && !gone && <p className="faint pad">Drawing…</p>}
      {p && !gone && (list ? <TreeList tree={tree} search={search} toggle={toggle} /> : <Picture key={`${epoch}`} tree={tree} search={search} toggle={toggle} follow={follow} />)}
    </div>
  )
}

/** Where the last picture of the page was looked at, kept when the tree gets another shape. */
let lastView: { root: string; viewport: Viewport } | null = null

function firstView(tree: LiveTree, w: number, h: number): Viewport {
  const p = tree.picture
  if (!p) return { x: 0, y: 0, zoom: 1 }
  if (lastView?.root === p.root) return lastView.viewport
  const all = fitted(0, 0, p.w, p.h, w, h)
  if (w > 700 || all.zoom > 0.5 || p.nodes.id.length > 300) return all
  return { zoom: 0.62, x: 12, y: (h - p.h * 0.62) / 2 } // on a phone the beginning of it, to be read
}

function fitted(x: number, y: number, w: number, h: number, into: number, high: number): Viewport {
  const zoom = Math.min(1.2, Math.max(0.01, Math.min((into - 60) / Math.max(1, w), (high - 60) / Math.max(1, h))))
  return { zoom, x: (into - w * zoom) / 2 - x * zoom, y: (high - h * zoom) / 2 - y * zoom }
}

function countIn(tree: LiveTree, v: Viewport, w: number, h: number): number {
  const n = tree.picture?.nodes
  if (!n) return 0
  let count = 0
  const [left, top, right, bottom] = [-v.x / v.zoom, -v.y / v.zoom, (w - v.x) / v.zoom, (h - v.y) / v.zoom]
  for (let i = 0; i < n.id.length; i++) {
    if (!n.frame[i] && (n.x[i] ?? 0) < right && (n.y[i] ?? 0) < bottom && (n.x[i] ?? 0) + (n.w[i] ?? 0) > left && (n.y[i] ?? 0) + (n.h[i] ?? 0) > top) count++
  }
  return count
}

interface PictureProps { tree: LiveTree; search: string; toggle: (id: string) => void; follow: boolean }

function Picture(props: PictureProps): ReactNode {
  const box = useRef<HTMLDivElement>(null)
  const [size, setSize] = useState<[number, number] | null>(null)
  useEffect(() => {
    if (!box.current) return
    const watch = new ResizeObserver(([e]) => { if (e) setSize([e.contentRect.width, e.contentRect.height]) })
    watch.observe(box.current)
    return () => watch.disconnect()
  }, [])
  return <div className="canvas" ref={box}>{size && size[0] > 0 && <Flow {...props} w={size[0]} h={size[1]} />}</div>
}

function Flow({ tree, search, toggle, follow, w, h }: PictureProps & { w: number; h: number }): ReactNode {
  const p = tree.picture
  const [start] = useState(() => firstView(tree, w, h))
  const view = useRef<Viewport>(start)
  const [far, setFar] = useState(() => countIn(tree, start, w, h) > many)
  const [selected, select] = useState(-1)
  const canvas = useRef<HTMLCanvasElement>(null)
  const flow = useReactFlow()
  const store = useStoreApi()
  const nodes = useMemo(() => boxes(tree), [tree])
  const dirty = useRef(true)
  useEffect(() => { dirty.current = true }, [far, selected, w, h])
  useEffect(() => tree.subscribe(() => { dirty.current = true }), [tree])
  useEffect(() => { // draws when something changed, or moves
    const painter = new Painter()
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches
    let frame = 0
    const draw = (): void => {
      if (dirty.current && canvas.current) dirty.current = painter.draw(canvas.current, tree, { ...view.current, w, h }, far, selected, still)
      frame = requestAnimationFrame(draw)
    }
    frame = requestAnimationFrame(draw)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const repaint = (): void => { dirty.current = true }
    scheme.addEventListener('change', repaint)
    const theme = new MutationObserver(repaint)
    theme.observe(document.documentElement, { attributes: true })
    return () => { cancelAnimationFrame(frame); scheme.removeEventListener('change', repaint); theme.disconnect() }
  }, [tree, far, selected, w, h])
  const moved = useCallback((v: Viewport) => {
    view.current = v
    dirty.current = true
    if (tree.picture) lastView = { root: tree.picture.root, viewport: v }
    const n = countIn(tree, v, w, h)
    setFar(now => now ? n > few : n > many)
  }, [tree, w, h])
  const show = useCallback((i: number, zoom?: number) => {
    const n = tree.picture?.nodes
    if (!n) return
    void flow.setCenter((n.x[i] ?? 0) + (n.w[i] ?? 0) / 2, (n.y[i] ?? 0) + (n.h[i] ?? 0) / 2, { zoom: zoom ?? Math.max(0.7, view.current.zoom), duration: 150 })
  }, [flow, tree])
  useEffect(() => { // the first that is called so
    const want = search.trim().toLowerCase()
    const at = want ? tree.picture?.nodes.id.findIndex((id, i) => id.toLowerCase().includes(want) || tree.picture?.nodes.type[i]?.toLowerCase().includes(want)) ?? -1 : -1
    if (at >= 0) { select(at); show(at) }
  }, [search, tree, show])
  useEffect(() => {
    if (!follow) return
    let shown = -1
    return tree.subscribe(() => { if (tree.latest >= 0 && tree.latest !== shown) { shown = tree.latest; show(shown, view.current.zoom) } })
  }, [follow, tree, show])
  const fit = useCallback(() => { if (p) void flow.setViewport(fitted(0, 0, p.w, p.h, w, h), { duration: 150 }) }, [flow, p, w, h])
  const open = useCallback((i: number) => { const id = tree.picture?.nodes.job[i]; if (id) go(link('job', id)) }, [tree])
  const clicked = useCallback((_: Click, n: JobNode) => select(n.data.index), [])
  const opened = useCallback((_: Click, n: JobNode) => open(n.data.index), [open])
  const key = (e: KeyPress): void => {
    if (e.target instanceof HTMLInputElement || e.ctrlKey || e.metaKey || e.altKey) return
    const dir = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[e.key]
    if (dir) {
      e.preventDefault()
      const next = neighbor(tree, selected, dir[0] ?? 0, dir[1] ?? 0)
      if (next >= 0) { select(next); show(next) }
    } else if (e.key === 'Enter' && selected >= 0) open(selected)
    else if (e.key === 'f') fit()
    else if (e.key === '+' || e.key === '=') void flow.zoomIn({ duration: 100 })
    else if (e.key === '-') void flow.zoomOut({ duration: 100 })
    else if (e.key === 'Escape') select(-1)
  }
  const hit = (e: Click): void => { // boxes on the canvas are no elements
    const at = store.getState().domNode?.getBoundingClientRect()
    if (!far || !at) return
    const x = (e.clientX - at.left - view.current.x) / view.current.zoom
    const y = (e.clientY - at.top - view.current.y) / view.current.zoom
    const n = tree.picture?.nodes
    select(n ? n.id.findLastIndex((_, i) => !n.frame[i] && x >= (n.x[i] ?? 0) && y >= (n.y[i] ?? 0) && x <= (n.x[i] ?? 0) + (n.w[i] ?? 0) && y <= (n.y[i] ?? 0) + (n.h[i] ?? 0)) : -1)
  }
  const state = useMemo(() => ({ tree, selected, toggle }), [tree, selected, toggle])
  return (
    <TreeContext.Provider value={state}>
      <div className="stage" role="application" aria-label="The tree as a picture; the list shows the same" tabIndex={0} onKeyDown={key}>
        <canvas ref={canvas} aria-hidden="true" data-far={far} />
        <ReactFlow nodes={far ? none : nodes} nodeTypes={nodeTypes} defaultViewport={start} minZoom={0.01} maxZoom={2} onlyRenderVisibleElements
          nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} elementsSelectable={false} edgesFocusable={false} disableKeyboardA11y zoomOnDoubleClick={false}
          onNodeClick={clicked} onNodeDoubleClick={opened} onViewportChange={moved} onPaneClick={hit} proOptions={{ hideAttribution: true }} />
        <div className="zoom row"><button type="button" aria-label="Nearer" onClick={() => { void flow.zoomIn() }}>+</button><button type="button" aria-label="Farther" onClick={() => { void flow.zoomOut() }}>−</button><button type="button" aria-label="All of it" onClick={fit}>⤢</button></div>
        {selected >= 0 && <Selected tree={tree} i={selected} toggle={toggle} close={() => select(-1)} />}
      </div>
    </TreeContext.Provider>
  )
}

/** What is selected, in words. */
function Selected({ tree, i, toggle, close }: { tree: LiveTree; i: number; toggle: (id: string) => void; close: () => void }): ReactNode {
  useSyncExternalStore(tree.subscribe, () => tree.nodeSeq[i] ?? 0)
  const n = tree.picture?.nodes
  if (!n || !n.id[i]) return null
  const [verb, id] = (n.fold[i] ?? '').split(/ (.*)/s)
  const job = n.job[i] ?? ''
  return (
    <aside className="selected" aria-label="Selected" aria-live="polite">
      <p className="row"><b><bdi>{n.label[i]}</bdi></b>{tree.statusOf(i) && <Status of={tree.statusOf(i)} />}</p>
      {n.note[i] && <p><bdi>{n.note[i]}</bdi></p>}
      <p className="row">
        {job && <JobLink id={job} name="Open the job" />}
        {id && <button type="button" onClick={() => toggle(id)}>{verb === 'open' ? 'Open it' : 'Fold it'}</button>}
        <button type="button" onClick={close}>Close</button>
      </p>
    </aside>
  )
}

function boxes(tree: LiveTree): JobNode[] {
  const n = tree.picture?.nodes
  return n ? n.id.map((id, i): JobNode => ({
    id, type: 'job', position: { x: n.x[i] ?? 0, y: n.y[i] ?? 0 }, data: { index: i }, width: n.w[i] ?? 0, height: n.h[i] ?? 0, zIndex: n.frame[i] ? 0 : 1,
  })) : none
}

/** The nearest box in a direction. */
function neighbor(tree: LiveTree, from: number, dx: number, dy: number): number {
  const n = tree.picture?.nodes
  if (!n) return -1
  if (from < 0) return n.frame.findIndex(f => !f)
  const middle = (i: number): [number, number] => [(n.x[i] ?? 0) + (n.w[i] ?? 0) / 2, (n.y[i] ?? 0) + (n.h[i] ?? 0) / 2]
  const [x, y] = middle(from)
  let [best, least] = [-1, Infinity]
  n.id.forEach((_, i) => {
    if (i === from || n.frame[i]) return
    const [a, b] = middle(i)
    const ahead = (a - x) * dx + (b - y) * dy
    const aside = Math.abs((a - x) * dy) + Math.abs((b - y) * dx)
    if (ahead > 4 && ahead + 2 * aside < least) [best, least] = [i, ahead + 2 * aside]
  })
  return best
}
