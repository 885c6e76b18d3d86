import type { ReactNode } from 'react'
import { useHistory, usePoll } from '../data'
import { num, short, span } from '../format'
import { Empty, JobLink, Problem, Sparkline, Status, Time } from '../parts/basics'
import { link } from '../route'
import type { DeadLetters, JobPage, Stats } from '../types'

function Tile({ label, value, unit, history, to, bad }: { label: string; value: string; unit?: string; history: number[]; to: string; bad?: boolean }): ReactNode {
  return (
    <a className={`tile ${bad ? 'bad' : ''}`} href={to}>
      <span className="tile-label">{label}</span>
      <span className="tile-value">{value}{unit && <small> {unit}</small>}</span>
      <Sparkline values={history} label={label} />
    </a>
  )
}

interface Cause { key: string; what: ReactNode; why: ReactNode; to: string; verb: string }

/** What needs somebody, the worst first; each leads to its cause. */
function causes(stats: Stats, failed: JobPage | null, dead: DeadLetters | null): Cause[] {
  const all: Cause[] = []
  if (stats.engines.length === 0) {
    all.push({ key: 'engines', what: 'No worker is alive', why: 'nothing runs until one is: weir worker, or weir serve without --no-engine', to: link('queues'), verb: 'See queues' })
  }
  for (const j of failed?.jobs ?? []) {
    all.push({ key: j.id, what: <><Status of={j.status} /> <JobLink id={j.id} name={j.aliases?.[0] ?? j.name ?? j.type} /></>, why: j.reason ?? j.errors?.[0]?.message ?? 'it failed', to: link('job', j.id), verb: 'See why' })
  }
  for (const l of dead?.letters.slice(0, 5) ?? []) {
    all.push({ key: l.id, what: <>Dead letter of <JobLink id={l.job} /></>, why: l.error, to: link('dead', '', { job: l.job }), verb: 'Look at it' })
  }
  for (const q of stats.queues) {
    if (q.paused) all.push({ key: `p ${q.queue}`, what: <>Queue <bdi>{q.queue}</bdi> is paused</>, why: `${num(q.pending)} ready jobs wait`, to: link('queues'), verb: 'Resume it' })
    else if (q.pending > 0 && q.engines === 0) all.push({ key: `e ${q.queue}`, what: <>Nobody serves queue <bdi>{q.queue}</bdi></>, why: `${num(q.pending)} ready jobs wait`, to: link('queues'), verb: 'See queues' })
    else if (q.latency_ms > 30_000) all.push({ key: `l ${q.queue}`, what: <>Queue <bdi>{q.queue}</bdi> is late</>, why: `the first ready job waits since ${span(q.latency_ms)}`, to: link('queues'), verb: 'See queues' })
  }
  if (stats.overdue > 0) all.push({ key: 'overdue', what: `${num(stats.overdue)} timers are late`, why: 'the sweeper of a worker looks after them: is one alive?', to: link('queues'), verb: 'See queues' })
  return all
}

export function Overview(): ReactNode {
  const stats = usePoll<Stats>('v1/stats', 1000)
  const failed = usePoll<JobPage>('v1/jobs?status=failed&all=true&limit=8', 3000)
  const dead = usePoll<DeadLetters>('v1/dead?limit=6', 5000)
  const blocked = usePoll<{ count: number }>('v1/count?status=suspended&all=true', 5000)
  const newest = usePoll<JobPage>('v1/jobs?limit=8&order=-ran', 2000)
  const s = stats.data
  const sum = (f: (q: Stats['queues'][number]) => number): number => s?.queues.reduce((n, q) => n + f(q), 0) ?? 0
  const ready = sum(q => q.pending)
  const slots = s?.engines.reduce((n, e) => n + e.concurrency, 0) ?? 0
  const at = s?.at
  const histories = {
    running: useHistory(s?.running, at), ready: useHistory(s ? ready : undefined, at), failed: useHistory(s?.failed, at),
    late: useHistory(s ? Math.max(0, ...s.queues.map(q => q.latency_ms)) : undefined, at), roots: useHistory(s?.roots, at),
    asleep: useHistory(blocked.data?.count, at), engines: useHistory(s?.engines.length, at),
  }
  if (!s) return <div className="view"><h1>Overview</h1><Problem text={stats.error} />{!stats.error && <p className="faint">Loading…</p>}</div>
  const attention = causes(s, failed.data, dead.data)
  const late = Math.max(0, ...s.queues.map(q => q.latency_ms))
  return (
    <div className="view">
      <h1>Overview</h1>
      <div className="tiles">
        <Tile label="Running" value={num(s.running)} unit={`of ${num(slots)}`} history={histories.running} to={link('jobs', '', { status: 'running', all: 'true' })} />
        <Tile label="Ready" value={short(ready)} unit="jobs" history={histories.ready} to={link('queues')} />
        <Tile label="Oldest ready" value={span(late)} history={histories.late} to={link('queues')} bad={late > 30_000} />
        <Tile label="Failed" value={short(s.failed)} unit="jobs" history={histories.failed} to={link('jobs', '', { status: 'failed', all: 'true' })} bad={s.failed > 0} />
        <Tile label="Suspended" value={blocked.data ? short(blocked.data.count) : '–'} unit="jobs" history={histories.asleep} to={link('jobs', '', { status: 'suspended', all: 'true' })} />
        <Tile label="Workers alive" value={num(s.engines.length)} history={histories.engines} to={link('queues')} bad={s.engines.length === 0} />
        <Tile label="Trees" value={short(s.roots)} history={histories.roots} to={link('jobs')} />
      </div>
      <div className="columns">
        <section aria-labelledby="attention">
          <h2 id="attention">Needs attention first</h2>
          {attention.length === 0 && <Empty title="Nothing does."><p>Failed jobs, dead letters, paused and late queues would be here.</p></Empty>}
          <ul className="list">
            {attention.map(c => (
              <li key={c.key}><div><p>{c.what}</p><p className="faint clip"><bdi>{c.why}</bdi></p></div><a className="button" href={c.to}>{c.verb}</a></li>
            ))}
          </ul>
        </section>
        <section aria-labelledby="newest">
          <h2 id="newest">Ran last</h2>
          {newest.data?.jobs.length === 0 && <Empty title="No jobs yet."><p>Start one: <code>weir run examples/wordcount/graph.yaml</code>, or <code>weir create map --arg expr='it * 2'</code></p></Empty>}
          <ul className="list">
            {newest.data?.jobs.map(j => (
              <li key={j.id}>
                <div><p><JobLink id={j.id} name={j.aliases?.[0] ?? j.name ?? j.type} tree /> <span className="faint"><bdi>{j.type}</bdi></span></p><p className="faint clip"><Time at={j.ran_at ?? j.created_at} />{j.reason && <> · <bdi>{j.reason}</bdi></>}</p></div>
                <Status of={j.status} />
              </li>
            ))}
          </ul>
        </section>
      </div>
    </div>
  )
}
