import { useVirtualizer } from '@tanstack/react-virtual'
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { get } from '../api'
import { usePoll, useWho } from '../data'
import { num } from '../format'
import { useActing } from '../parts/acting'
import { Empty, JobLink, Problem, Status, Time } from '../parts/basics'
import { go, link, setQuery, type Route } from '../route'
import type { Job, JobPage } from '../types'
import { bulkAsk, type Verb } from './bulk'

const statuses = ['running', 'queued', 'scheduled', 'waiting', 'suspended', 'failed', 'completed', 'terminating', 'terminated']
const fields: [string, string, string][] = [
  ['type', 'Type', 'a worker type'], ['queue', 'Queue', 'default'], ['label', 'Label', 'KEY=VALUE'], ['alias', 'Alias', 'shop*'], ['path', 'Path', 'shop/pay/*'],
]
const pageSize = 200

/** The filters of the URL, as the API takes them. */
function filterOf(route: Route): string {
  const q = new URLSearchParams()
  for (const name of ['status', 'type', 'queue', 'label', 'alias', 'path', 'all', 'since', 'until']) {
    const value = route.query.get(name)
    if (value) q.set(name, value)
  }
  return q.toString()
}

/** Pages that follow the first one, which is asked for again and again. */
function useMore(filter: string, order: string, first: JobPage | null): { rows: Job[]; more: () => void; left: boolean; error: string } {
  const [pages, setPages] = useState<{ of: string; list: JobPage[] }>({ of: '', list: [] })
  const [error, setError] = useState('')
  const busy = useRef(false)
  const key = `${filter} ${order}`
  const list = pages.of === key ? pages.list : []
  const last = list.at(-1) ?? first
  const more = useCallback(() => {
    if (busy.current || !last?.next) return
    busy.current = true
    get<JobPage>(`v1/jobs?${filter}&order=${order}&limit=${pageSize}&after=${last.next}`)
      .then(page => setPages(old => ({ of: key, list: [...(old.of === key ? old.list : []), page] })))
      .catch((e: unknown) => setError(e instanceof Error ? e.message : String(e)))
      .finally(() => { busy.current = false })
  }, [filter, order, key, last])
  const rows = useMemo(() => {
    const seen = new Set<string>()
    return [first, ...list].flatMap(p => p?.jobs ?? []).filter(j => !seen.has(j.id) && seen.add(j.id))
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [first, pages, key])
  return { rows, more, left: Boolean(last?.next), error }
}

export function JobsView({ route }: { route: Route }): ReactNode {
  const filter = filterOf(route)
  const order = route.query.get('order') ?? '-created'
  const [typed, setTyped] = useState(() => Object.fromEntries(fields.map(([f]) => [f, route.query.get(f) ?? ''])))
  const list = usePoll<JobPage>(`v1/jobs?${filter}&order=${order}&limit=${pageSize}`, 2000)
  const count = usePoll<{ count: number }>(`v1/count?${filter}`, 5000)
  const { rows, more, left, error } = useMore(filter, order, list.data)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const { mayAct } = useWho()
  const { ask, done } = useActing()
  const { again } = list
  useEffect(() => { if (done) { again(); setChosen(new Set()) } }, [done, again])
  useEffect(() => setTyped(Object.fromEntries(fields.map(([f]) => [f, route.query.get(f) ?? '']))), [filter]) // eslint-disable-line react-hooks/exhaustive-deps
  useEffect(() => {
    const timer = setTimeout(() => {
      const change = Object.fromEntries(Object.entries(typed).filter(([f, v]) => v !== (route.query.get(f) ?? '')))
      if (Object.keys(change).length) setQuery(route, change)
    }, 350)
    return () => clearTimeout(timer)
  }, [typed]) // eslint-disable-line react-hooks/exhaustive-deps
  const status = route.query.get('status') ?? ''
  const bulk = (verb: Verb): void => {
    const ids = rows.filter(j => chosen.has(j.id))
    void bulkAsk(verb, ids.length ? ids : null, filter).then(ask).catch((e: unknown) => ask({ title: 'It cannot be done', text: String(e), verb: 'Close', run: () => Promise.resolve() }))
  }
  const toggle = (id: string): void => setChosen(old => { const next = new Set(old); if (!next.delete(id)) next.add(id); return next })
  return (
    <div className="view full">
      <div className="head">
        <h1>Jobs</h1>
        <span className="faint" data-testid="count">{count.data ? `${num(count.data.count)} pass the filters` : ''}</span>
      </div>
      <form className="filters" role="search" onSubmit={e => e.preventDefault()}>
        <label>Status
          <select value={status} onChange={e => setQuery(route, { status: e.target.value, all: e.target.value ? 'true' : route.query.get('all') ?? '' })}>
            <option value="">any</option>
            {statuses.map(s => <option key={s}>{s}</option>)}
          </select>
        </label>
        {fields.map(([f, label, hint], i) => (
          <label key={f}>{label}
            <input data-search={i === 3 ? '' : undefined} value={typed[f] ?? ''} placeholder={hint} spellCheck={false} onChange={e => setTyped(old => ({ ...old, [f]: e.target.value }))} />
          </label>
        ))}
        <label>Order
          <select value={order} onChange={e => setQuery(route, { order: e.target.value })}>
            <option value="-created">newest</option><option value="created">oldest</option><option value="-ran">ran last</option><option value="status">status</option><option value="type">type</option>
          </select>
        </label>
        <label className="check"><input type="checkbox" checked={route.query.get('all') === 'true'} onChange={e => setQuery(route, { all: e.target.checked ? 'true' : '' })} /> jobs in trees, too</label>
        <a className="button" href={link('jobs')}>Clear</a>
      </form>
      {mayAct && (
        <div className="row acts" role="group" aria-label="Acts on jobs">
          <span className="faint">{chosen.size ? `${num(chosen.size)} selected:` : 'All that pass the filters:'}</span>
          <button type="button" onClick={() => bulk('retry')}>Retry failed…</button>
          <button type="button" onClick={() => bulk('terminate')}>Terminate…</button>
          <button type="button" className="danger" onClick={() => bulk('delete')}>Delete…</button>
        </div>
      )}
      <Problem text={list.error || error} />
      {list.data && rows.length === 0
        ? <Empty title={filter ? 'No job passes these filters.' : 'No jobs yet.'}><p>{left ? <button type="button" onClick={more}>Look further</button> : filter ? <a href={link('jobs')}>Clear the filters</a> : <>Start one: <code>weir create map --arg expr='it * 2'</code></>}</p></Empty>
        : <Rows rows={rows} more={more} left={left} chosen={chosen} toggle={mayAct ? toggle : null} />}
    </div>
  )
}

function Rows({ rows, more, left, chosen, toggle }: { rows: Job[]; more: () => void; left: boolean; chosen: ReadonlySet<string>; toggle: ((id: string) => void) | null }): ReactNode {
  const box = useRef<HTMLDivElement>(null)
  const [at, setAt] = useState(0)
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => 44, overscan: 12 })
  const items = virtual.getVirtualItems()
  const end = items.at(-1)?.index ?? 0
  useEffect(() => { if (left && end >= rows.length - 30) more() }, [left, end, rows.length, more])
  const move = (e: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length }[e.key]
    const job = rows[at]
    if (step) {
      e.preventDefault()
      const next = Math.min(rows.length - 1, Math.max(0, at + step))
      setAt(next)
      virtual.scrollToIndex(next)
    } else if (e.key === 'Enter' && job && e.target === e.currentTarget) go(link('job', job.id))
    else if (e.key === ' ' && job && toggle && e.target === e.currentTarget) { e.preventDefault(); toggle(job.id) }
  }
  return (
    <div className="grid" role="grid" aria-label="Jobs" aria-rowcount={left ? -1 : rows.length + 1} tabIndex={0} ref={box} onKeyDown={move} aria-activedescendant={rows[at] ? `row-${at}` : undefined}>
      <div className="grid-row grid-head" role="row" aria-rowindex={1}>
        {['', 'Name', 'Type', 'Status', 'Why', 'Queue', 'Ran'].map(h => <span key={h} role="columnheader">{h || <span className="sr">Selected</span>}</span>)}
      </div>
      <div role="rowgroup" ref={el => { if (el) el.style.height = `${virtual.getTotalSize()}px` }} className="grid-body">
        {items.map(v => {
          const j = rows[v.index]
          if (!j) return null
          const name = j.aliases?.[0] ?? j.name ?? j.id
          return (
            <div key={j.id} id={`row-${v.index}`} role="row" aria-rowindex={v.index + 2} aria-selected={chosen.has(j.id)} className={`grid-row ${v.index === at ? 'at' : ''}`}
              style={{ transform: `translateY(${v.start}px)` }} onClick={() => setAt(v.index)}>
              <span role="gridcell">{toggle && <input type="checkbox" aria-label={`Select ${name}`} checked={chosen.has(j.id)} onChange={() => toggle(j.id)} />}</span>
              <span role="gridcell" className="clip"><JobLink id={j.id} name={name} /> <a className="faint tree-link" href={link('tree', j.id)} aria-label={`Tree of ${name}`}>tree</a></span>
              <span role="gridcell" className="clip"><bdi>{j.type}</bdi></span>
              <span role="gridcell"><Status of={j.status} /></span>
              <span role="gridcell" className="clip faint"><bdi>{j.reason ?? (j.status === 'failed' ? j.errors?.[0]?.message : '') ?? ''}</bdi></span>
              <span role="gridcell" className="clip"><bdi>{j.queue}</bdi></span>
              <span role="gridcell" className="faint"><Time at={j.ran_at ?? j.created_at} /></span>
            </div>
          )
        })}
      </div>
    </div>
  )
}
