import { useVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef, useState, useSyncExternalStore, type KeyboardEvent, type ReactNode } from 'react'
import { num, rate } from '../format'
import { DeadMark, JobLink, Status } from '../parts/basics'
import { go, link } from '../route'
import type { LiveTree } from './live'

/** The tree as a list, for those who cannot see the picture, and for very large trees. */
export function TreeList({ tree, shape, search, toggle }: { tree: LiveTree; shape: number; search: string; toggle: (id: string) => void }): ReactNode {
  const seq = useSyncExternalStore(tree.subscribe, () => tree.picture?.seq ?? 0)
  const box = useRef<HTMLDivElement>(null)
  const rows = useMemo(() => {
    const n = tree.picture?.nodes
    if (!n) return []
    const all: { i: number; depth: number }[] = []
    const below = new Map<number, number[]>()
    n.id.forEach((_, i) => {
      const p = n.parent[i] ?? -1
      const some = below.get(p)
      if (some) some.push(i)
      else below.set(p, [i])
    })
    const walk = (p: number, d: number): void => {
      for (const i of below.get(p) ?? []) { all.push({ i, depth: d }); walk(i, d + 1) }
    }
    walk(-1, 0)
    const want = search.toLowerCase()
    return want ? all.filter(r => n.id[r.i]?.toLowerCase().includes(want) || n.type[r.i]?.toLowerCase().includes(want)) : all
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [tree, shape, search])
  const into = useMemo(() => {
    const map = new Map<number, number[]>()
    tree.picture?.edges.to.forEach((to, e) => {
      const some = map.get(to)
      if (some) some.push(e)
      else map.set(to, [e])
    })
    return map
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [tree, shape])
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => 40, overscan: 10 })
  const [at, setAt] = useState(-1)
  const p = tree.picture
  if (!p) return null
  const key = (e: KeyboardEvent): void => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target !== e.currentTarget) return
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -rows.length, End: rows.length }
    const step = steps[e.key]
    const i = rows[at]?.i ?? -1
    if (step !== undefined) {
      e.preventDefault()
      const next = Math.max(0, Math.min(rows.length - 1, at + step))
      setAt(next)
      virtual.scrollToIndex(next)
    } else if (e.key === 'Enter' && p.nodes.job[i]) go(link('job', p.nodes.job[i]))
    else if (e.key === 'o') { const id = p.nodes.fold[i]?.split(/ (.*)/s)[1]; if (id) toggle(id) }
  }
  const now = performance.now()
  return (
    <div className="grid tree-list" role="grid" aria-label="Jobs of the tree" aria-rowcount={rows.length + 1} tabIndex={0} ref={box} data-seq={seq} onKeyDown={key} aria-activedescendant={at >= 0 ? `row${at}` : undefined}>
      <div className="grid-row grid-head" role="row" aria-rowindex={1}>{['Name', 'Type', 'Status', 'Waits for it', 'Why'].map(h => <span key={h} role="columnheader">{h}</span>)}</div>
      <div role="rowgroup" className="grid-body" ref={el => { if (el) el.style.height = `${virtual.getTotalSize()}px` }}>
        {virtual.getVirtualItems().map(v => {
          const row = rows[v.index]
          if (!row) return null
          const i = row.i
          const [verb, id] = (p.nodes.fold[i] ?? '').split(/ (.*)/s)
          const edges = (into.get(i) ?? []).filter(e => !p.edges.spawn[e])
          return (
            <div key={p.nodes.id[i]} id={`row${v.index}`} role="row" aria-rowindex={v.index + 2} aria-selected={v.index === at} className={v.index === at ? 'grid-row at' : 'grid-row'} style={{ transform: `translateY(${v.start}px)` }}>
              <span role="gridcell" className="clip" data-depth={Math.min(row.depth, 6)}>
                {id && <button type="button" className="fold" aria-label={`${verb === 'open' ? 'Open' : 'Fold'} ${p.nodes.label[i]}`} onClick={() => toggle(id)}>{verb === 'open' ? '+' : '−'}</button>}
                {p.nodes.job[i] ? <JobLink id={p.nodes.job[i] ?? ''} name={p.nodes.label[i] ?? ''} /> : <bdi>{p.nodes.label[i]}</bdi>}
              </span>
              <span role="gridcell" className="clip"><bdi>{p.nodes.type[i]}</bdi></span>
              <span role="gridcell" className="tight-row">{tree.statusOf(i) ? <Status of={tree.statusOf(i)} idle={tree.lookOf(i) === 'idle'} /> : null}<DeadMark job={tree.deadLink(i)} n={p.nodes.dead[i]} /></span>
              <span role="gridcell" className="clip">{edges.map(e => `${p.edges.to_port[e]} ${num(p.edges.waiting[e] ?? 0)}${p.edges.limit[e] ? '/' + num(p.edges.limit[e] ?? 0) : ''}, ${[num(p.edges.total[e] ?? 0) + ' passed', rate(tree.rateOf(e, now))].filter(Boolean).join(', ')}`).join(' · ')}</span>
              <span role="gridcell" className="clip faint"><bdi>{p.nodes.note[i]}</bdi></span>
            </div>
          )
        })}
      </div>
    </div>
  )
}
