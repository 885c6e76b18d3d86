import { useEffect, useState, type ReactNode } from 'react'
import { act, enc } from '../api'
import { usePoll, useWho } from '../data'
import { num, pretty } from '../format'
import { useActing } from '../parts/acting'
import { Empty, JobLink, Problem } from '../parts/basics'
import { General, SchemaForm } from '../parts/form'
import { GraphInput, GraphPicture, hasParams, useGraph } from '../parts/graph'
import { go, link } from '../route'
import type { Difference, Job, Json, NodeDifference } from '../types'

const value = (v: Json): string => v === null ? '–' : pretty(v, 600)

function Nodes({ title, sign, of, children }: { title: string; sign: string; of: NodeDifference[]; children?: (n: NodeDifference) => ReactNode }): ReactNode {
  if (of.length === 0) return null
  return (
    <section className={`diff d-${sign === '+' ? 'add' : sign === '−' ? 'remove' : 'change'}`} aria-label={title}>
      <h3>{title}</h3>
      <ul>{of.map(n => <li key={n.path}><span className="sign" aria-hidden="true">{sign}</span> <bdi>{n.path || 'the graph itself'}</bdi> <span className="faint"><bdi>{n.type}</bdi>{n.waiting ? `, holds ${num(n.waiting)} messages: the patch is refused while it does` : ''}</span>{children?.(n)}</li>)}</ul>
    </section>
  )
}

/** What a patch would change, in the order in which somebody should look at it: what goes first. */
export function Diff({ of: d }: { of: Difference }): ReactNode {
  const edges = (title: string, sign: string, all: string[]): ReactNode => all.length > 0 && (
    <section className={`diff d-${sign === '+' ? 'add' : 'remove'}`} aria-label={title}><h3>{title}</h3><ul>{all.map(e => <li key={e}><span className="sign" aria-hidden="true">{sign}</span> <code>{e}</code></li>)}</ul></section>
  )
  const none = d.removed.length + d.added.length + d.changed.length + d.edges_added.length + d.edges_removed.length === 0
  return (
    <>
      {d.same || none ? <p>{d.same ? 'The graph has this definition already: a patch changes nothing.' : 'No job and no edge changes.'}</p> : null}
      <Nodes title="Removed jobs, with their state" sign="−" of={d.removed} />
      <Nodes title="Added jobs" sign="+" of={d.added} />
      <Nodes title="Changed jobs: messages and state stay" sign="~" of={d.changed}>
        {n => <dl className="fields-changed">{n.fields?.map(f => <div key={f.field}><dt><bdi>{f.field}</bdi></dt><dd><del>{value(f.from)}</del> <span aria-hidden="true">→</span> <ins>{value(f.to)}</ins></dd></div>)}</dl>}
      </Nodes>
      {edges('Removed edges', '−', d.edges_removed)}
      {edges('Added edges', '+', d.edges_added)}
    </>
  )
}

const words = (d: Difference): string => [[d.removed.length, 'removed'], [d.added.length, 'added'], [d.changed.length, 'changed']].filter(([n]) => n).map(([n, w]) => `${n} ${n === 1 ? 'job' : 'jobs'} ${w}`).join(', ') || `${d.edges_added.length + d.edges_removed.length} edges changed`

/** Changes a graph at work into another one: its difference is shown first. */
export default function PatchView({ id }: { id: string }): ReactNode {
  const job = usePoll<Job>(`v1/jobs/${enc(id)}`, 5000)
  const draft = useGraph()
  const { mayAct } = useWho()
  const { ask } = useActing()
  const [diff, setDiff] = useState<Difference | null>(null)
  const [error, setError] = useState<unknown>(null)
  const asked = draft.schema ? JSON.stringify(draft.body()) : ''
  useEffect(() => {
    setDiff(null)
    setError(null)
    if (!asked) return
    let over = false
    const timer = setTimeout(() => {
      act<Difference>('POST', `v1/jobs/${enc(id)}/patch/diff`, asked).then(d => { if (!over) setDiff(d) }).catch((e: unknown) => { if (!over) setError(e) })
    }, 400)
    return () => { over = true; clearTimeout(timer) }
  }, [asked, id])
  const name = job.data?.aliases?.[0] ?? job.data?.name ?? id
  const patch = (): void => {
    if (!diff) return
    ask({
      title: `Patch ${name}?`, text: <><p>{words(diff)}. Jobs with the same path of names stay, with their messages and state: all of it at once, or nothing.</p>{diff.removed.length > 0 && <p>Removed for good: {diff.removed.slice(0, 10).map(n => n.path).join(', ')}{diff.removed.length > 10 ? ' …' : ''}</p>}</>,
      verb: 'Patch', danger: diff.removed.length > 0,
      run: async () => { await act('POST', `v1/jobs/${enc(id)}/patch`, asked); go(link('tree', id)); return `${name} is patched: ${words(diff)}` },
    })
  }
  return (
    <div className="view">
      <div className="head"><h1>Patch <JobLink id={id} name={name} tree /></h1></div>
      <Problem text={job.error} />
      <div className="columns">
        <section className="card" aria-label="The new graph"><GraphInput draft={draft} /><General error={draft.error} />
          {hasParams(draft.schema) && draft.schema && <><h2>Parameters</h2><SchemaForm key={JSON.stringify(draft.schema)} schema={draft.schema} value={draft.params} label="Parameters" submit="Show what changes" onChange={v => draft.setParams((v ?? {}) as { [key: string]: Json })} onSubmit={v => draft.setParams(v as { [key: string]: Json })} /></>}
        </section>
        <section className="card" aria-label="What changes" aria-live="polite">
          <h2>What changes</h2>
          {!draft.schema && !draft.error && <Empty title="How shall it be?"><p>Paste the graph as it shall be: what would be added, removed and changed is shown here first.</p></Empty>}
          {draft.schema && <GraphPicture draft={draft} />}
          <General error={error} />
          {diff && <Diff of={diff} />}
          {mayAct && diff && !diff.same && <div className="row end"><button type="button" className="primary" onClick={patch}>Patch…</button></div>}
        </section>
      </div>
    </div>
  )
}
