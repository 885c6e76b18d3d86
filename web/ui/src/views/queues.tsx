import { useEffect, type ReactNode } from 'react'
import { act, enc } from '../api'
import { usePoll, useWho } from '../data'
import { num, span } from '../format'
import { useActing } from '../parts/acting'
import { Empty, Problem, Time } from '../parts/basics'
import type { Engine, Queue } from '../types'

export function QueuesView(): ReactNode {
  const queues = usePoll<Queue[]>('v1/queues', 1000)
  const engines = usePoll<Engine[]>('v1/engines', 2000)
  const { mayAct } = useWho()
  const { ask, done } = useActing()
  const { again } = queues
  useEffect(() => { if (done) again() }, [done, again])
  const pause = (q: Queue): void => ask({
    title: q.paused ? `Resume queue ${q.queue}?` : `Pause queue ${q.queue}?`,
    text: q.paused ? `Its ${num(q.pending)} ready jobs begin their runs again.` : 'No job of it begins a run, on any worker. Runs in progress end as usual; what is sent meanwhile waits.',
    verb: q.paused ? 'Resume' : 'Pause',
    run: async () => { await act('POST', `v1/queues/${enc(q.queue)}/${q.paused ? 'resume' : 'pause'}`); return `Queue ${q.queue} is ${q.paused ? 'resumed' : 'paused'}` },
  })
  return (
    <div className="view">
      <h1>Queues</h1>
      <Problem text={queues.error} />
      {queues.data?.length === 0 && <Empty title="No queue is known yet."><p>A worker makes its queues known: <code>weir worker</code></p></Empty>}
      <div className="cards">
        {queues.data?.map(q => (
          <article key={q.queue} className="card" aria-label={`Queue ${q.queue}`}>
            <div className="head"><h2><bdi>{q.queue}</bdi></h2>{q.paused && <span className="status s-suspended">ǁ paused</span>}
              {mayAct && <button type="button" onClick={() => pause(q)}>{q.paused ? 'Resume…' : 'Pause…'}</button>}
            </div>
            <dl className="facts">
              <div><dt>Ready</dt><dd>{num(q.pending)}</dd></div><div><dt>Running</dt><dd>{num(q.active)}{q.limit ? ` of at most ${num(q.limit)}` : ''}</dd></div>
              <div><dt>Oldest waits</dt><dd>{q.pending ? span(q.latency_ms) : '–'}</dd></div><div><dt>Workers</dt><dd>{num(q.engines)}, {num(q.slots)} slots</dd></div>
            </dl>
            {q.ready.length > 0 && <ul className="list tight">{q.ready.map(r => <li key={r.type}><bdi>{r.type || 'to end'}</bdi><span>{num(r.jobs)} · {span(r.oldest_ms)}</span></li>)}</ul>}
          </article>
        ))}
      </div>
      <h2>Workers</h2>
      {engines.data?.length === 0 && <Empty title="No worker is alive."><p>Start one: <code>weir worker</code></p></Empty>}
      <ul className="list">
        {engines.data?.map(e => <li key={e.id}><div><p><bdi>{e.host}</bdi> <span className="faint">process {e.pid}, {e.version}</span></p><p className="faint">since <Time at={e.started} /></p></div><span>{num(e.running)} of {num(e.concurrency)} runs{e.stopping ? ', stopping' : ''}</span></li>)}
      </ul>
    </div>
  )
}
