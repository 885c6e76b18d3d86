import { useState, type ReactNode } from 'react'
import { act } from '../api'
import { usePoll, useWho } from '../data'
import { useActing } from '../parts/acting'
import { Empty, Problem } from '../parts/basics'
import { General, SchemaForm } from '../parts/form'
import { GraphInput, GraphPicture, hasParams, useGraph } from '../parts/graph'
import type { Schema } from '../parts/schema'
import { go, link, setQuery, type Route } from '../route'
import type { Job, Json, WorkerType } from '../types'

/** What a new tree is called, besides what it is. */
interface Names { alias: string; labels: string; existing: string }

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(text.split(/[,\s]+/).filter(Boolean).map(l => { const [k = '', ...v] = l.split('='); return [k, v.join('=')] }))
}

function NameFields({ names, set, graph }: { names: Names; set: (n: Names) => void; graph: boolean }): ReactNode {
  return (
    <div className="filters">
      <label>Alias <input value={names.alias} spellCheck={false} placeholder="orders (or none)" onChange={e => set({ ...names, alias: e.target.value })} /></label>
      <label>Labels <input value={names.labels} spellCheck={false} placeholder="team=shop, env=test" onChange={e => set({ ...names, labels: e.target.value })} /></label>
      {graph && names.alias && (
        <label>If the alias exists
          <select value={names.existing} onChange={e => set({ ...names, existing: e.target.value })}><option value="refuse">refuse</option><option value="take">take that graph</option><option value="patch">patch that graph</option></select>
        </label>
      )}
    </div>
  )
}

/** Starts what is described, and goes to its tree; what the API refuses stays as an error at the form. */
function useStart(path: string): { busy: boolean; error: unknown; start: (body: unknown) => void } {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const { tell } = useActing()
  const start = (body: unknown): void => {
    setBusy(true)
    setError(null)
    act<Job & { outcome?: string }>('POST', path, body).then(j => {
      if (!j) return
      tell(j.outcome === 'found' ? 'It was there already: this is it' : `${j.aliases?.[0] ?? j.name ?? j.type} is started`)
      go(link('tree', j.id))
    }).catch(setError).finally(() => setBusy(false))
  }
  return { busy, error, start }
}

const named = (n: Names): Record<string, unknown> => ({ ...(n.alias ? { alias: n.alias.trim() } : {}), ...(n.labels.trim() ? { labels: labelsOf(n.labels) } : {}) })

function StartGraph(): ReactNode {
  const draft = useGraph()
  const [names, setNames] = useState<Names>({ alias: '', labels: '', existing: 'refuse' })
  const { busy, error, start } = useStart('v1/graphs')
  const run = (params: { [key: string]: Json }): void => start({ ...draft.body(), ...(hasParams(draft.schema) ? { params } : {}), ...named(names), ...(names.alias ? { existing: names.existing } : {}) })
  return (
    <div className="columns">
      <section className="card" aria-label="The graph"><GraphInput draft={draft} /><General error={draft.error} /></section>
      <section className="card" aria-label="Its start">
        {!draft.schema && !draft.error && <Empty title="What shall run?"><p>Paste a graph at the left, or insert the example: its parameters become a form here.</p></Empty>}
        {draft.schema && (
          <>
            <GraphPicture draft={draft} />
            {hasParams(draft.schema)
              ? <><h2>Parameters</h2><SchemaForm key={JSON.stringify(draft.schema)} schema={draft.schema} value={draft.params} label="Parameters" submit="Start" busy={busy} error={error} onChange={v => draft.setParams((v ?? {}) as { [key: string]: Json })} onSubmit={v => run(v as { [key: string]: Json })}><NameFields names={names} set={setNames} graph /></SchemaForm></>
              : <form onSubmit={e => { e.preventDefault(); run({}) }}><NameFields names={names} set={setNames} graph /><General error={error} /><button type="submit" className="primary" disabled={busy}>{busy ? 'Working…' : 'Start'}</button></form>}
          </>
        )}
      </section>
    </div>
  )
}

function StartJob({ route }: { route: Route }): ReactNode {
  const types = usePoll<WorkerType[]>('v1/types', 10_000)
  const name = route.query.get('type') ?? ''
  const chosen = types.data?.find(t => t.type === name)
  const [args, setArgs] = useState<Json | undefined>({})
  const [names, setNames] = useState<Names>({ alias: '', labels: '', existing: '' })
  const { busy, error, start } = useStart('v1/jobs')
  const queue = chosen?.queue
  const run = (v: Json): void => start({ type: name, args: v, ...(queue && queue !== 'default' ? { queue } : {}), ...named(names) })
  return (
    <section className="card narrow" aria-label="A job of a type">
      <Problem text={types.error} />
      <label className="block">Type <select value={name} onChange={e => { setArgs({}); setQuery(route, { type: e.target.value }) }}>
        <option value="">choose one…</option>
        {types.data?.map(t => <option key={`${t.type} ${t.queue}`} value={t.type}>{t.type}</option>)}
      </select></label>
      {types.data?.length === 0 && <Empty title="No worker has told its types yet."><p>Start one: <code>weir worker</code></p></Empty>}
      {chosen && (
        <SchemaForm key={name} schema={chosen.args as Schema} value={args} label="Arguments" submit="Start" busy={busy} error={error} onChange={setArgs} onSubmit={run}>
          <NameFields names={names} set={setNames} graph={false} />
        </SchemaForm>
      )}
    </section>
  )
}

export default function StartView({ route }: { route: Route }): ReactNode {
  const { mayAct, me } = useWho()
  const job = route.query.get('as') === 'job'
  return (
    <div className="view">
      <div className="head"><h1>Start</h1>
        <div className="tabs" role="group" aria-label="What to start">
          <a href={link('start')} aria-current={job ? undefined : 'page'}>A graph</a><a href={link('start', '', { as: 'job' })} aria-current={job ? 'page' : undefined}>A job of a type</a>
        </div>
      </div>
      {me && !mayAct ? <Empty title="You may look, and start nothing."><p>A token of the role <code>operate</code> may: <code>weir token create --role operate</code></p></Empty> : job ? <StartJob route={route} /> : <StartGraph />}
    </div>
  )
}
