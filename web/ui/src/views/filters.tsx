import { useEffect, useRef, useState, type ReactNode } from 'react'
import { useActing } from '../parts/acting'
import { Status } from '../parts/basics'
import { link, setQuery, type Route } from '../route'
import { saveView, forgetView, useViews } from './saved'

export const statuses = ['running', 'queued', 'scheduled', 'waiting', 'suspended', 'failed', 'completed', 'terminating', 'terminated']
const fields: [string, string, string][] = [
  ['type', 'Type', 'a worker type'], ['queue', 'Queue', 'default'], ['label', 'Label', 'KEY=VALUE'], ['alias', 'Alias', 'shop*'], ['path', 'Path', 'shop/pay/*'], ['name', 'Name in a tree', 'pay*'],
]
const ages: [string, string][] = [
  ['', 'any'], ['5m', 'last 5 minutes'], ['1h', 'last hour'], ['24h', 'last day'], ['168h', 'last week'], ['-1h', 'older than an hour'], ['-24h', 'older than a day'], ['-168h', 'older than a week'],
]

/** An age like 5m, or -1h for what is older, as the API takes it: whole minutes, so that it stays the same for a while. */
function ageFilter(age: string): [string, string] | null {
  const [, older, n, unit] = /^(-?)(\d+)([mh])$/.exec(age) ?? []
  if (!n) return null
  const minute = Math.floor(Date.now() / 60_000) - Number(n) * (unit === 'h' ? 60 : 1)
  return [older ? 'until' : 'since', new Date(minute * 60_000).toISOString()]
}

/** What somebody types into the search field, as a filter: a path has a slash, a label an equals sign, and anything else is part of an alias. */
function searchFilter(text: string): [string, string] | null {
  const t = text.trim()
  if (!t) return null
  if (t.includes('=')) return ['label', t]
  if (t.includes('/')) return ['path', t.endsWith('/') ? `${t}**` : t]
  return ['alias', /[*?[]/.test(t) ? t : `*${t}*`]
}

/** The filters of the URL, as the API takes them. */
export function filterOf(route: Route): string {
  const q = new URLSearchParams()
  for (const name of ['status', 'type', 'queue', 'label', 'alias', 'path', 'name', 'blocked', 'all', 'since', 'until']) {
    const value = route.query.get(name)
    if (value) q.set(name, value)
  }
  for (const one of [ageFilter(route.query.get('age') ?? ''), searchFilter(route.query.get('q') ?? '')]) {
    if (one && !q.has(one[0])) q.set(...one)
  }
  return q.toString()
}

/** Views that everybody has, and those that were saved in this browser. */
function Views({ route }: { route: Route }): ReactNode {
  const views = useViews()
  const { tell } = useActing()
  const here = new URLSearchParams([...route.query].filter(([, v]) => v !== '')).toString()
  const [naming, setNaming] = useState('')
  const [open, setOpen] = useState(false)
  const builtIn: [string, string][] = [['Trees', ''], ['Failed', 'status=failed&all=true'], ['Suspended', 'status=suspended&all=true'], ['Blocked', 'blocked=true'], ['Running', 'status=running&all=true'], ['Ran last', 'order=-ran&all=true']]
  const known = [...builtIn, ...views.map(v => [v.name, v.query] as [string, string])]
  const is = (query: string): boolean => new URLSearchParams(query).toString() === here
  return (
    <nav className="views" aria-label="Saved views">
      {known.map(([name, query], i) => (
        <span key={`${name} ${i}`} className="view-tab">
          <a href={`#/jobs${query ? `?${query}` : ''}`} aria-current={is(query) ? 'page' : undefined}><bdi>{name}</bdi></a>
          {i >= builtIn.length && <button type="button" className="icon small" aria-label={`Forget view ${name}`} title="Forget this view" onClick={() => { forgetView(name); tell(`View ${name} is forgotten`, () => { saveView(name, query) }) }}>✕</button>}
        </span>
      ))}
      {!open && !known.some(([, query]) => is(query)) && <button type="button" onClick={() => setOpen(true)}>Save this view</button>}
      {open && (
        <form className="row" onSubmit={e => { e.preventDefault(); saveView(naming.trim(), here); setOpen(false); setNaming(''); tell(`Saved in this browser as ${naming.trim()}; the URL is the same view for others`) }}>
          <input autoFocus aria-label="Name of the view" placeholder="its name" maxLength={60} value={naming} onChange={e => setNaming(e.target.value)} onKeyDown={e => { if (e.key === 'Escape') setOpen(false) }} />
          <button type="submit" className="primary" disabled={!naming.trim()}>Save</button>
        </form>
      )}
    </nav>
  )
}

/** The filters of the list of jobs, all of which are in the URL. */
export function Filters({ route }: { route: Route }): ReactNode {
  const names = ['q', ...fields.map(([f]) => f)]
  const ofRoute = (): Record<string, string> => Object.fromEntries(names.map(f => [f, route.query.get(f) ?? '']))
  const here = route.query.toString()
  const [typed, setTyped] = useState(ofRoute)
  const [more, setMore] = useState(fields.some(([f]) => route.query.get(f)))
  const known = useRef(typed)
  useEffect(() => { // what the URL changes is shown; what is being typed stays
    const before = known.current
    const now = known.current = ofRoute()
    setTyped(old => Object.fromEntries(names.map(f => [f, (now[f] !== before[f] ? now[f] : old[f]) ?? ''])))
  }, [here]) // eslint-disable-line react-hooks/exhaustive-deps
  useEffect(() => {
    const timer = setTimeout(() => {
      const change = Object.fromEntries(Object.entries(typed).filter(([f, v]) => v !== (route.query.get(f) ?? '')))
      if (Object.keys(change).length) setQuery(route, change)
    }, 350)
    return () => clearTimeout(timer)
  }, [typed]) // eslint-disable-line react-hooks/exhaustive-deps
  const chosen = new Set((route.query.get('status') ?? '').split(',').filter(Boolean))
  const toggle = (s: string): void => {
    if (!chosen.delete(s)) chosen.add(s)
    setQuery(route, { status: statuses.filter(x => chosen.has(x)).join(','), ...(chosen.size ? { all: 'true' } : {}) })
  }
  return (
    <>
      <Views route={route} />
      <form className="filters" role="search" onSubmit={e => e.preventDefault()}>
        <label className="wide">Search
          <input data-search="" type="search" value={typed['q']} placeholder="an alias, shop/pay/*, team=billing" spellCheck={false} onChange={e => setTyped(old => ({ ...old, q: e.target.value }))} />
        </label>
        <label>Created
          <select value={route.query.get('age') ?? ''} onChange={e => setQuery(route, { age: e.target.value })}>{ages.map(([v, text]) => <option key={v} value={v}>{text}</option>)}</select>
        </label>
        <label className="check"><input type="checkbox" checked={route.query.get('all') === 'true'} onChange={e => setQuery(route, { all: e.target.checked ? 'true' : '' })} /> jobs in trees, too</label>
        <button type="button" aria-expanded={more} onClick={() => setMore(!more)}>{more ? 'Fewer filters' : 'More filters'}</button>
        <a className="button" href={link('jobs')}>Clear</a>
      </form>
      {more && (
        <div className="filters" role="group" aria-label="More filters">
          {fields.map(([f, label, hint]) => (
            <label key={f}>{label}
              <input value={typed[f] ?? ''} placeholder={hint} spellCheck={false} onChange={e => setTyped(old => ({ ...old, [f]: e.target.value }))} />
            </label>
          ))}
        </div>
      )}
      <div className="chips" role="group" aria-label="Status">
        {statuses.map(s => <button key={s} type="button" className="chip" aria-pressed={chosen.has(s)} onClick={() => toggle(s)}><Status of={s} /></button>)}
      </div>
    </>
  )
}
