import { useVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef, useSyncExternalStore, type ReactNode } from 'react'
import { num, rate } from '../format'
import { JobLink, Status } from '../parts/basics'
import type { LiveTree } from './live'

/** The tree as a list, for those who cannot see the picture, and for very large trees. */
export function TreeList({ tree, search, toggle }: { tree: LiveTree; search: string; toggle: (id: string) => void }): ReactNode {
  const seq = useSyncExternalStore(tree.subscribe, () => tree.picture?.seq ?? 0)
  const epoch = tree.picture?.epoch
  const box = useRef<HTMLDivElement>(null)
  const rows = useMemo(() => {
    const n = tree.picture?.nodes
    if (!n) return []
    const depth: number[] = []
    const all: { i: number; depth: number }[] = []
    const below = new Map<number, number[]>()
    n.id.forEach((_, i) => {
      const p = n.parent[i] ?? -1
      below.set(p, [...below.get(p) ?? [], i])
    })
    const walk = (p: number, d: number): void => {
      for (const i of below.get(p) ?? []) { depth[i] = d; all.push({ i, depth: d }); walk(i, d + 1) }
    }
    walk(-1, 0)
    const want = search.toLowerCase()
    return want ? all.filter(r => n.id[r.i]?.toLowerCase().includes(want) || n.type[r.i]?.toLowerCase().includes(want)) : all
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [tree, epoch, search])
  const into = useMemo(() => {
    const map = new Map<number, number[]>()
    tree.picture?.edges.to.forEach((to, e) => map.set(to, [...map.get(to) ?? [], e]))
    return map
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [tree, epoch])
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => 40, overscan: 10 })
  const p = tree.picture
  if (!p) return null
  const now = performance.now()
  return (
    <div className="grid tree-list" role="grid" aria-label="Jobs of the tree" aria-rowcount={rows.length + 1} tabIndex={0} ref={box} data-seq={seq}>
      <div className="grid-row grid-head" role="row" aria-rowindex={1}>{['Name', 'Type', 'Status', 'Waits for it', 'Why'].map(h => <span key={h} role="columnheader">{h}</span>)}</div>
      <div role="rowgroup" className="grid-body" ref={el => { if (el) el.style.height = `${virtual.getTotalSize()}px` }}>
        {virtual.getVirtualItems().map(v => {
          const row = rows[v.index]
          if (!row) return null
          const i = row.i
          const [verb, id] = (p.nodes.fold[i] ?? '').split(/ (.*)/s)
          const edges = (into.get(i) ?? []).filter(e => !p.edges.spawn[e])
          return (
            <div key={p.nodes.id[i]} role="row" aria-rowindex={v.index + 2} className="grid-row" style={{ transform: `translateY(${v.start}px)` }}>
              <span role="gridcell" className="clip" data-depth={Math.min(row.depth, 6)}>
                {id && <button type="button" className="fold" aria-label={`${verb === 'open' ? 'Open' : 'Fold'} ${p.nodes.label[i]}`} onClick={() => toggle(id)}>{verb === 'open' ? '+' : '−'}</button>}
                {p.nodes.job[i] ? <JobLink id={p.nodes.job[i] ?? ''} name={p.nodes.label[i] ?? ''} /> : <bdi>{p.nodes.label[i]}</bdi>}
              </span>
              <span role="gridcell" className="clip"><bdi>{p.nodes.type[i]}</bdi></span>
              <span role="gridcell">{tree.statusOf(i) ? <Status of={tree.statusOf(i)} /> : null}</span>
              <span role="gridcell" className="clip">{edges.map(e => `${p.edges.to_port[e]}: ${num(p.edges.waiting[e] ?? 0)}${p.edges.limit[e] ? '/' + num(p.edges.limit[e] ?? 0) : ''} of ${num(p.edges.total[e] ?? 0)} ${rate(tree.rateOf(e, now))}`).join(' · ')}</span>
              <span role="gridcell" className="clip faint"><bdi>{p.nodes.note[i]}</bdi></span>
            </div>
          )
        })}
      </div>
    </div>
  )
}
