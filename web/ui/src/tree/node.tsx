import type { Node, NodeProps } from '@xyflow/react'
import { createContext, useContext, useSyncExternalStore, type ReactNode } from 'react'
import { num } from '../format'
import { DeadMark, Status } from '../parts/basics'
import type { LiveTree } from './live'
import type { Pick } from './pick'

export type JobNode = Node<{ index: number }, 'job'>

export interface TreeState { tree: LiveTree; pick: Pick; toggle: (id: string) => void }
export const TreeContext = createContext<TreeState | null>(null)

const never = () => () => undefined

/** How a job stands, in the same words in its box and in what is said of it when it is selected. */
export function Standing({ look, status, several, note }: { look: string; status: string; several: boolean; note: string }): ReactNode {
  if (look === 'idle') return several ? null : <span className="faint" title="suspended until something comes">idle</span>
  return status ? <Status of={status} {...(note ? { title: note } : {})} /> : null
}

/** A box with its ports, at the places that the server's layout gives. */
export function JobBox({ data }: NodeProps<JobNode>): ReactNode {
  const state = useContext(TreeContext)
  const seq = useSyncExternalStore(state?.tree.subscribe ?? never, () => state?.tree.nodeSeq[data.index] ?? 0)
  const selected = useSyncExternalStore(state?.pick.subscribe ?? never, () => state?.pick.get().node === data.index)
  const n = state?.tree.picture?.nodes
  if (!state || !n) return null
  const i = data.index
  const [x, y] = [n.x[i] ?? 0, n.y[i] ?? 0]
  const status = state.tree.statusOf(i)
  const look = state.tree.lookOf(i)
  const kind = n.kind[i]
  const [verb, id] = (n.fold[i] ?? '').split(/ (.*)/s)
  const counts = n.counts[i]
  const classes = `box ${n.frame[i] ? 'frame' : ''} ${kind === 2 || kind === 3 ? 'terminal' : ''} e-${look} ${selected ? 'selected' : ''}`
  return (
    <div className={classes} data-seq={seq} data-job={n.job[i]} data-node={n.id[i]}
      ref={el => { if (el) { el.style.width = `${n.w[i]}px`; el.style.height = `${n.h[i]}px` } }}>
      <div className="box-name"><bdi>{n.label[i]}</bdi>{id && <button type="button" className="fold nodrag" aria-label={`${verb === 'open' ? 'Open' : 'Fold'} ${n.label[i]}`} onClick={e => { e.stopPropagation(); state.toggle(id) }}>{verb === 'open' ? '+' : '−'}</button>}</div>
      {kind !== 2 && kind !== 3 && (
        <>
          {n.type[i] && n.type[i] !== n.label[i] && <div className="box-type"><bdi>{n.type[i]}</bdi></div>}
          <div className="box-status">
            <Standing look={look} status={status} several={!!counts} note={n.note[i] ?? ''} />
            <DeadMark job={state.tree.deadLink(i)} n={n.dead[i]} />
            {counts && <span className="faint">{counts.map((c, k) => c > 0 ? `${num(c)} ${state.tree.picture?.statuses[k] ?? ''}` : '').filter(Boolean).join(', ')}</span>}
            {!counts && n.note[i] && <span className="faint clip" title={n.note[i]}><bdi>{n.note[i]}</bdi></span>}
          </div>
        </>
      )}
      {n.pins[i]?.map(p => (
        <span key={p.dir + p.name} className={`pin ${p.dir}`} ref={el => { if (el) { el.style.left = `${p.x - x}px`; el.style.top = `${p.y - y}px` } }}>
          {kind !== 2 && kind !== 3 && <span className="pin-name"><bdi>{p.name}</bdi></span>}
        </span>
      ))}
    </div>
  )
}
