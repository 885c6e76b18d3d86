import { useSyncExternalStore, type ReactNode } from 'react'
import { num, rate } from '../format'
import { DeadMark, JobLink } from '../parts/basics'
import type { LiveTree } from './live'
import { Standing } from './node'
import { usePicked, type Pick } from './pick'

interface Props { tree: LiveTree; pick: Pick; toggle: (id: string) => void; show: (node: number) => void }

/** What is selected, in words. */
export function Selected({ tree, pick, toggle, show }: Props): ReactNode {
  const { node, edge } = usePicked(pick)
  useSyncExternalStore(tree.subscribe, () => node >= 0 ? tree.nodeSeq[node] ?? 0 : edge >= 0 ? tree.picture?.seq ?? 0 : 0)
  const p = tree.picture
  const close = <button type="button" onClick={() => pick.set({})}>Close</button>
  if (!p) return null
  if (edge >= 0 && edge < p.edges.from.length) {
    return (
      <aside className="selected" aria-label="Selected wire">
        <p><Ends tree={tree} edge={edge} pick={pick} show={show} /></p>
        <WireFacts tree={tree} edge={edge} />
        <p className="row">{close}</p>
      </aside>
    )
  }
  const n = p.nodes
  if (node < 0 || !n.id[node]) return null
  const [verb, id] = (n.fold[node] ?? '').split(/ (.*)/s)
  const job = n.job[node] ?? ''
  const counts = n.counts[node]
  return (
    <aside className="selected" aria-label="Selected" aria-live="polite">
      <p className="row"><b><bdi>{n.label[node]}</bdi></b><Standing look={tree.lookOf(node)} status={tree.statusOf(node)} several={!!counts} note={n.note[node] ?? ''} /><DeadMark job={tree.deadLink(node)} n={n.dead[node]} /></p>
      {n.type[node] && n.type[node] !== n.label[node] && <p className="faint"><bdi>{n.type[node]}</bdi></p>}
      {counts && <p className="faint">{counts.map((c, k) => c > 0 ? `${num(c)} ${p.statuses[k] ?? ''}` : '').filter(Boolean).join(', ')}</p>}
      {n.note[node] && <p><bdi>{n.note[node]}</bdi></p>}
      <p className="row">
        {job && <JobLink id={job} name="Open the job" />}
        {id && <button type="button" onClick={() => toggle(id)}>{verb === 'open' ? 'Open it' : 'Fold it'}</button>}
        {close}
      </p>
    </aside>
  )
}

/** From which port a wire leads to which; each end can be gone to. */
function Ends({ tree, edge, pick, show }: { tree: LiveTree; edge: number; pick: Pick; show: (node: number) => void }): ReactNode {
  const e = tree.picture?.edges
  const n = tree.picture?.nodes
  if (!e || !n) return null
  const end = (node: number, port: string): ReactNode => (
    <button type="button" className="end" onClick={() => { pick.set({ node }); show(node) }}><bdi>{n.label[node]}</bdi>{port && <>.<bdi>{port}</bdi></>}</button>
  )
  return <>{end(e.from[edge] ?? -1, e.spawn[edge] ? '' : e.from_port[edge] ?? '')} <span aria-label="to">→</span> {end(e.to[edge] ?? -1, e.spawn[edge] ? '' : e.to_port[edge] ?? '')}</>
}

/** What waits on a wire, of how many, and what passes. */
export function WireFacts({ tree, edge }: { tree: LiveTree; edge: number }): ReactNode {
  const e = tree.picture?.edges
  if (!e) return null
  if (e.spawn[edge]) return <p className="faint">Runs of the first make the second: its children.</p>
  const waiting = e.waiting[edge] ?? 0
  const limit = e.limit[edge] ?? 0
  return (
    <>
      {limit > 0 && <meter aria-label="How full it is" min={0} max={limit} low={limit * 0.6} high={limit * 0.85} optimum={0} value={Math.min(waiting, limit)} />}
      <dl className="wire-facts">
        <div><dt>wait</dt><dd>{num(waiting)}{limit > 0 ? ` of ${num(limit)} (${Math.round(100 * waiting / limit)} %)` : ', no bound'}</dd></div>
        <div><dt>passed</dt><dd>{num(e.total[edge] ?? 0)}</dd></div>
        <div><dt>now</dt><dd>{rate(tree.rateOf(edge, performance.now())) || 'nothing moves'}</dd></div>
      </dl>
    </>
  )
}

/** A wire in one line, for who points at it. */
export function wireWords(tree: LiveTree, edge: number): string {
  const p = tree.picture
  if (!p || edge < 0) return ''
  const { from, to, from_port: out, to_port: into, waiting, limit, total, spawn } = p.edges
  const a = p.nodes.label[from[edge] ?? -1] ?? ''
  const b = p.nodes.label[to[edge] ?? -1] ?? ''
  if (spawn[edge]) return `${a} makes ${b}`
  const most = limit[edge] ?? 0
  const wait = waiting[edge] ?? 0
  const speed = rate(tree.rateOf(edge, performance.now()))
  return `${a}${out[edge] ? '.' + out[edge] : ''} → ${b}${into[edge] ? '.' + into[edge] : ''}: ${num(wait)}${most > 0 ? ` of ${num(most)}` : ''} wait${most > 0 ? ` (${Math.round(100 * wait / most)} % full)` : ''}, ${num(total[edge] ?? 0)} passed${speed ? `, ${speed}` : ''}`
}
