import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState, type KeyboardEvent, type MouseEvent, type ReactNode } from 'react'
import { said } from '../api'
import { usePoll, useWho } from '../data'
import { isIdle, num } from '../format'
import { useActing } from '../parts/acting'
import { DeadMark, Empty, JobLink, Limited, Problem, Status, Time } from '../parts/basics'
import { useNames } from '../parts/names'
import { idsIn, Reason } from '../parts/words'
import { go, link, setQuery, type Route } from '../route'
import { bulkAsk, type Verb } from './bulk'
import { filterOf, Filters } from './filters'
import { useJobPages, type Row } from './jobpages'

const nameOf = (j: Row): string => j.aliases?.[0] ?? j.name ?? j.id

/** Jobs that were chosen one by one: by ID, with what the last look told of them. */
type Chosen = ReadonlyMap<string, Row>

export function JobsView({ route }: { route: Route }): ReactNode {
  const filter = filterOf(route)
  const order = route.query.get('order') ?? '-created'
  const { rows, left, loaded, error, more, again, see } = useJobPages(filter, order)
  const count = usePoll<{ count: number }>(`v1/count?${filter}`, rows.length > 5000 ? 15_000 : 5000)
  const [chosen, setChosen] = useState<Chosen>(new Map())
  const { mayAct } = useWho()
  const { ask, done } = useActing()
  useEffect(() => { if (done) { again(); setChosen(new Map()) } }, [done, again])
  useEffect(() => setChosen(new Map()), [filter])
  const bulk = (verb: Verb): void => {
    void bulkAsk(verb, chosen.size ? [...chosen.values()] : null, filter).then(ask).catch((e: unknown) => ask({ title: 'It cannot be done', text: said(e), verb: 'Close', run: () => Promise.resolve() }))
  }
  return (
    <div className="view full">
      <div className="head">
        <h1>Jobs</h1>
        <span className="faint" data-testid="count">{count.data ? `${num(count.data.count)} pass the filters` : ''}</span>
        <span className="grow" />
        {mayAct && <a className="button" href={link('start')}>Start a graph</a>}
      </div>
      <Filters route={route} />
      {mayAct && (
        <div className="row acts" role="group" aria-label="Acts on jobs">
          <span className="faint">{chosen.size ? `${num(chosen.size)} selected:` : 'All that pass the filters:'}</span>
          <button type="button" onClick={() => bulk('retry')}>Retry failed…</button>
          <button type="button" onClick={() => bulk('terminate')}>Terminate…</button>
          <button type="button" className="danger" onClick={() => bulk('delete')}>Delete…</button>
          {chosen.size > 0 && <button type="button" onClick={() => setChosen(new Map())}>Select none</button>}
        </div>
      )}
      <Problem text={error || count.error} />
      {!loaded && !error && <p className="faint">Loading…</p>}
      {loaded && rows.length === 0 && (
        <Empty title={filter ? 'No job passes these filters.' : 'No jobs yet.'}>
          <p>{left ? <button type="button" onClick={more}>Look further</button> : filter ? <a href={link('jobs')}>Clear the filters</a> : <>{mayAct && <><a href={link('start')}>Start a graph</a> here, or type </>}<code>weir create map --args {`'{"expr": "it * 2"}'`}</code></>}</p>
        </Empty>
      )}
      {rows.length > 0 && <Rows key={filter + order} rows={rows} more={more} left={left} see={see} count={count.data?.count} chosen={chosen} choose={mayAct ? setChosen : null} order={order} sort={o => setQuery(route, { order: o === '-created' ? '' : o })} act={bulk} />}
    </div>
  )
}

/** The columns: what they are called, and the orders that the API has for them, the first one for the first click. */
const columns: [string, string[]][] = [['', []], ['Name', []], ['Type', ['type']], ['Status', ['status']], ['Why', []], ['Queue', []], ['Created', ['-created', 'created']], ['Ran', ['-ran', 'ran']]]

function Head({ label, orders, order, sort }: { label: string; orders: string[]; order: string; sort: (order: string) => void }): ReactNode {
  const at = orders.indexOf(order)
  if (orders.length === 0) return <span role="columnheader">{label}</span>
  const next = orders[(at + 1) % orders.length] ?? order
  return (
    <span role="columnheader" aria-sort={at < 0 ? 'none' : order.startsWith('-') ? 'descending' : 'ascending'}>
      <button type="button" className="plain" onClick={() => sort(next)}>{label} <span aria-hidden="true">{at < 0 ? '↕' : order.startsWith('-') ? '↓' : '↑'}</span></button>
    </span>
  )
}

interface RowsProps {
  rows: Row[]; more: () => void; left: boolean; see: (row: number) => void; count: number | undefined; chosen: Chosen; choose: ((c: Chosen) => void) | null
  order: string; sort: (order: string) => void; act: (verb: Verb) => void
}

const page = 10

function Rows({ rows, more, left, see, count, chosen, choose, order, sort, act }: RowsProps): ReactNode {
  const box = useRef<HTMLDivElement>(null)
  const [at, setAt] = useState(0)
  const anchor = useRef(0)
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => 44, overscan: 12 })
  const items = virtual.getVirtualItems()
  const end = items.at(-1)?.index ?? 0
  see(items[0]?.index ?? 0)
  useEffect(() => { if (left && end >= rows.length - 600) more() }, [left, end, rows.length, more])

  const range = (from: number, to: number): void => {
    if (!choose) return
    const next = new Map(chosen)
    for (const j of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) next.set(j.id, j)
    choose(next)
  }
  const toggle = (i: number): void => {
    const j = rows[i]
    if (!j || !choose) return
    const next = new Map(chosen)
    if (!next.delete(j.id)) next.set(j.id, j)
    anchor.current = i
    choose(next)
  }
  const pick = (i: number, e: MouseEvent): void => { if (e.shiftKey) range(anchor.current, i); else toggle(i) }
  const move = (e: KeyboardEvent): void => {
    if (e.target !== e.currentTarget) return
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length }[e.key]
    const verb = ({ r: 'retry', t: 'terminate', Delete: 'delete' } as Record<string, Verb>)[e.key]
    const job = rows[at]
    if (step) {
      e.preventDefault()
      const next = Math.min(rows.length - 1, Math.max(0, at + step))
      if (e.shiftKey) range(at, next)
      setAt(next)
      virtual.scrollToIndex(next)
    } else if ((e.ctrlKey || e.metaKey) && e.key === 'a') { e.preventDefault(); range(0, rows.length - 1) }
    else if (e.ctrlKey || e.metaKey || e.altKey) return
    else if (e.key === 'Enter' && job) go(link(e.shiftKey ? 'tree' : 'job', job.id))
    else if (e.key === ' ' && job) { e.preventDefault(); toggle(at) }
    else if (verb && choose) act(verb)
  }
  const named = useNames(items.flatMap(v => idsIn(rows[v.index]?.reason ?? '')))
  const every = rows.length > 0 && chosen.size >= rows.length
  return (
    <div className="grid jobs" role="grid" aria-label="Jobs" aria-rowcount={left ? Math.max(count ?? -1, rows.length) + 1 : rows.length + 1} aria-multiselectable={Boolean(choose)} tabIndex={0} ref={box} onKeyDown={move} aria-activedescendant={items.some(v => v.index === at) ? `row-${at}` : undefined}>
      <div className="grid-row grid-head" role="row" aria-rowindex={1}>
        {columns.map(([label, orders]) => label
          ? <Head key={label} label={label} orders={orders} order={order} sort={sort} />
          : <span key="all" role="columnheader">{choose ? <input type="checkbox" aria-label="Select all that are loaded" checked={every} onChange={() => { if (every) choose(new Map()); else range(0, rows.length - 1) }} /> : <span className="sr">Selected</span>}</span>)}
      </div>
      <div role="rowgroup" ref={el => { if (el) el.style.height = `${virtual.getTotalSize()}px` }} className="grid-body">
        {items.map(v => {
          const j = rows[v.index]
          if (!j) return null
          const name = nameOf(j)
          return (
            <div key={v.index} id={`row-${v.index}`} role="row" aria-rowindex={v.index + 2} aria-selected={chosen.has(j.id)} className={`grid-row ${v.index === at ? 'at' : ''}`}
              style={{ transform: `translateY(${v.start}px)` }} onClick={() => setAt(v.index)}>
              <span role="gridcell">{choose && <input type="checkbox" aria-label={`Select ${name}`} checked={chosen.has(j.id)} onClick={e => pick(v.index, e)} onChange={() => undefined} />}</span>
              <span role="gridcell" className="clip"><JobLink id={j.id} name={name} /> <a className="faint tree-link" href={link('tree', j.id)} aria-label={`Tree of ${name}`}>tree</a></span>
              <span role="gridcell" className="clip"><bdi>{j.type}</bdi></span>
              <span role="gridcell" className="tight-row"><Status of={j.status} idle={isIdle(j.status, j.reason)} /><Limited status={j.status} reason={j.reason} /><DeadMark job={j.id} n={j.dead} /></span>
              <span role="gridcell" className="clip faint" title={j.reason ?? undefined}>{j.reason && <Reason text={j.reason} named={named} />}</span>
              <span role="gridcell" className="clip"><bdi>{j.queue}</bdi></span>
              <span role="gridcell" className="faint"><Time at={j.created_at} /></span>
              <span role="gridcell" className="faint"><Time at={j.ran_at} /></span>
            </div>
          )
        })}
      </div>
      {left && <p className="grid-foot faint">Loading more… {count === undefined ? '' : `${num(rows.length)} of ${num(count)}`}</p>}
    </div>
  )
}
