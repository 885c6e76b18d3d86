import { useEffect, useState, type ReactNode } from 'react'
import { act, enc, said } from '../api'
import { usePoll, useWho } from '../data'
import { num, span } from '../format'
import { useActing } from '../parts/acting'
import { Dialog, Empty, Problem, Time, type Asking } from '../parts/basics'
import { JobName, useNames } from '../parts/names'
import { link } from '../route'
import type { Engine, Limit, Queue } from '../types'

const path = (q: Queue, what: string): string => `v1/queues/${enc(q.queue)}/${what}`
const setLimit = (q: Queue, limit: number): Promise<unknown> => act('PUT', path(q, 'limit'), { limit })

function pausing(q: Queue): Asking {
  const [verb, back] = q.paused ? ['resume', 'pause'] : ['pause', 'resume']
  return {
    title: q.paused ? `Resume queue ${q.queue}?` : `Pause queue ${q.queue}?`,
    text: q.paused ? `Its ${num(q.pending)} ready jobs begin their runs again.` : 'No job of it begins a run, on any worker. Runs in progress end as usual; what is sent meanwhile waits.',
    verb: q.paused ? 'Resume' : 'Pause',
    run: async () => { await act('POST', path(q, verb)); return { said: `Queue ${q.queue} is ${q.paused ? 'resumed' : 'paused'}`, undo: () => act('POST', path(q, back)) } },
  }
}

/** Asks how many runs of a queue may go on at once. */
function LimitDialog({ queue: q, onClose }: { queue: Queue; onClose: () => void }): ReactNode {
  const [text, setText] = useState(q.limit ? String(q.limit) : '')
  const [error, setError] = useState('')
  const { tell } = useActing()
  const set = async (): Promise<void> => {
    const limit = text.trim() === '' ? 0 : Number(text)
    if (!Number.isInteger(limit) || limit < 0) { setError(`${text} is not a number of runs: give a whole one, or nothing for no limit`); return }
    try {
      await setLimit(q, limit)
      onClose()
      tell(limit ? `At most ${num(limit)} runs of queue ${q.queue} go on at once` : `Queue ${q.queue} has no limit`, () => setLimit(q, q.limit ?? 0))
    } catch (e) { setError(said(e)) }
  }
  return (
    <Dialog title={`Limit queue ${q.queue}`} onClose={onClose}>
      <form onSubmit={e => { e.preventDefault(); void set() }}>
        <p>At most this many of its runs go on at once, over all workers. Runs in progress end as usual, and ready jobs wait for a place.</p>
        <label className="block">Runs at once <input data-focus="" inputMode="numeric" value={text} placeholder="no limit" onChange={e => setText(e.target.value)} /></label>
        <Problem text={error} />
        <div className="row end"><button type="button" onClick={onClose}>Cancel</button><button type="submit" className="primary">Set the limit</button></div>
      </form>
    </Dialog>
  )
}

function QueueCard({ queue: q, onLimit }: { queue: Queue; onLimit: (q: Queue) => void }): ReactNode {
  const { mayAct } = useWho()
  const { ask } = useActing()
  return (
    <article className="card" aria-label={`Queue ${q.queue}`}>
      <div className="head"><h2><a href={link('jobs', '', { queue: q.queue, all: 'true' })}><bdi>{q.queue}</bdi></a></h2>{q.paused && <span className="status s-suspended">ǁ paused</span>}
        {mayAct && <><button type="button" onClick={() => onLimit(q)}>Limit…</button><button type="button" onClick={() => ask(pausing(q))}>{q.paused ? 'Resume…' : 'Pause…'}</button></>}
      </div>
      <dl className="facts">
        <div><dt>Ready</dt><dd>{num(q.pending)}</dd></div><div><dt>Running</dt><dd>{num(q.active)}{q.limit ? ` of at most ${num(q.limit)}` : ''}</dd></div>
        {q.limited > 0 && <div><dt>Wait for a limit</dt><dd>{num(q.limited)}, the first for {span(q.limited_ms)}</dd></div>}
        <div><dt>Oldest waits</dt><dd>{q.pending ? span(q.latency_ms) : '–'}</dd></div><div><dt>Workers</dt><dd>{num(q.engines)}, {num(q.slots)} slots</dd></div>
      </dl>
      {q.ready.length > 0 && <ul className="list tight">{q.ready.map(r => <li key={r.type}><bdi>{r.type || 'to end'}</bdi><span>{num(r.jobs)} · {span(r.oldest_ms)}</span></li>)}</ul>}
    </article>
  )
}

const some = (ids: string[]): string[] => ids.slice(0, 5)

/** Limits of runs at once, of types and queues, and rates, and who has their places. */
function Limits(): ReactNode {
  const list = usePoll<Limit[]>('v1/limits', 2000)
  const named = useNames((list.data ?? []).flatMap(l => some(l.holders)))
  if (!list.data?.length) return <Problem text={list.error} />
  return (
    <section aria-labelledby="limits">
      <h2 id="limits">Limits of runs</h2>
      <ul className="list">
        {list.data.map(l => (
          <li key={l.limit}>
            <div><p><bdi>{l.limit}</bdi>{l.by && <span className="faint"> for each value of <bdi>{l.by}</bdi></span>}</p>
              {l.holders.length > 0 && <p className="faint clip">{some(l.holders).map(h => <span key={h}><JobName id={h} of={named(h)} /> </span>)}</p>}</div>
            <span>{num(l.running)} of {num(l.places)}{l.per ? ` in ${l.per}` : ' at once'}{l.waiting ? `, ${num(l.waiting)} wait` : ''}{l.waiting && l.waited_ms ? `, the first for ${span(l.waited_ms)}` : ''}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

export function QueuesView(): ReactNode {
  const queues = usePoll<Queue[]>('v1/queues', 1000)
  const engines = usePoll<Engine[]>('v1/engines', 2000)
  const [limiting, setLimiting] = useState<Queue | null>(null)
  const { done } = useActing()
  const { again } = queues
  useEffect(() => { if (done) again() }, [done, again])
  return (
    <div className="view">
      <h1>Queues</h1>
      <Problem text={queues.error} />
      {queues.data?.length === 0 && <Empty title="No queue is known yet."><p>A worker makes its queues known: <code>weir worker</code></p></Empty>}
      <div className="cards">{queues.data?.map(q => <QueueCard key={q.queue} queue={q} onLimit={setLimiting} />)}</div>
      <Limits />
      <section aria-labelledby="workers">
        <h2 id="workers">Workers</h2>
        {engines.data?.length === 0 && <Empty title="No worker is alive."><p>Start one: <code>weir worker</code></p></Empty>}
        <ul className="list">
          {engines.data?.map(e => <li key={e.id}><div><p><bdi>{e.host}</bdi> <span className="faint">process {e.pid}, {e.version}</span></p><p className="faint">since <Time at={e.started} /></p></div><span>{num(e.running)} of {num(e.concurrency)} runs{e.stopping ? ', stopping' : ''}</span></li>)}
        </ul>
      </section>
      {limiting && <LimitDialog queue={limiting} onClose={() => setLimiting(null)} />}
    </div>
  )
}
