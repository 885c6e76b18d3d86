import { lazy, Suspense, useMemo, type ReactNode } from 'react'
import { useHistory, usePoll, useWho } from '../data'
import { isIdle, num, rate, secs, short, span } from '../format'
import type { Line } from '../parts/chart'
import { deadWords, Empty, JobLink, Problem, Sparkline, Status, Time } from '../parts/basics'
import { Reason } from '../parts/words'
import { link } from '../route'
import type { Activity, DeadCount, DeadLetters, JobPage, Stats } from '../types'
import { causes } from './attention'
import { useNames } from '../parts/names'

const Chart = lazy(() => import('../parts/chart'))

function Tile({ label, value, unit, note, history, to, bad }: { label: string; value: string; unit?: string; note?: string; history: number[]; to: string; bad?: boolean }): ReactNode {
  return (
    <a className={`tile ${bad ? 'bad' : ''}`} href={to}>
      <span className="tile-label">{label}</span>
      <span className="tile-value">{value}{unit && <small> {unit}</small>}</span>
      {note && <span className="tile-note">{note}</span>}
      <Sparkline values={history} label={label} />
    </a>
  )
}

/** What is counted together, in seconds; the server keeps as many spans as 15 minutes have. */
const step = 10
const spans = 90

const least = 12

/** Activity in columns from when the first of it was, with zeros for the spans in which nothing ran. The last span is not over, and left out. */
function columns(activity: Activity[], at: string): { times: number[]; of: (f: (a: Activity) => number | null, none: number | null) => (number | null)[] } {
  const last = Math.floor(Date.parse(at) / 1000 / step) * step
  const first = Math.min(...activity.map(a => Math.round(Date.parse(a.at) / 1000)))
  const n = Math.min(spans, Math.max(least, (last - first) / step + 1))
  const times = Array.from({ length: n }, (_, i) => last - (n - i) * step)
  const by = new Map(activity.map(a => [Math.round(Date.parse(a.at) / 1000), a]))
  return { times, of: (f, none) => times.map(t => { const a = by.get(t); return a ? f(a) : none }) }
}

function Charts({ stats }: { stats: Stats }): ReactNode {
  const last = Math.floor(Date.parse(stats.at) / 1000 / step)
  const { times, runs, waits } = useMemo(() => {
    const c = columns(stats.activity, stats.at)
    const runs: Line[] = [
      { label: 'messages read', color: '--idle', values: c.of(a => a.read / step, 0) },
      { label: 'runs', color: '--run', fill: true, values: c.of(a => a.runs / step, 0) },
      { label: 'failed runs', color: '--bad', values: c.of(a => a.failed / step, 0) },
    ]
    const waits: Line[] = [
      { label: 'queued p95', color: '--warn', values: c.of(a => a.waited.p95_seconds, null) },
      { label: 'queued p50', color: '--warn', dash: [4, 3], values: c.of(a => a.waited.p50_seconds, null) },
      { label: 'run p95', color: '--accent', values: c.of(a => a.took.p95_seconds, null) },
      { label: 'run p50', color: '--accent', dash: [4, 3], values: c.of(a => a.took.p50_seconds, null) },
    ]
    return { times: c.times, runs, waits }
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [last])
  return (
    <>
      <section className="card" aria-labelledby="throughput"><h2 id="throughput">Throughput, last 15 minutes</h2>
        <Chart title={`Runs and messages each second over 15 minutes; now ${rate(stats.recent.runs_per_second) || 'none'}`} times={times} lines={runs} unit={v => `${short(Math.round(v * 10) / 10)}/s`} />
      </section>
      <section className="card" aria-labelledby="latency"><h2 id="latency">Latency, last 15 minutes</h2>
        <Chart title={`How long jobs were queued and runs took over 15 minutes; now 95 % were queued for ${secs(stats.recent.waited.p95_seconds)} at most`} times={times} lines={waits} unit={secs} />
      </section>
    </>
  )
}

function Tiles({ s, ready, limited, slots, asleep }: { s: Stats; ready: number; limited: number; slots: number; asleep: number | undefined }): ReactNode {
  const at = s.at
  const { of } = columns(s.activity, at)
  const numbers = (f: (a: Activity) => number): number[] => of(f, 0).map(v => v ?? 0)
  const r = s.recent
  const histories = { ready: useHistory(ready, at), asleep: useHistory(asleep, at), engines: useHistory(s.engines.length, at), running: useHistory(s.running, at) }
  const late = Math.max(0, ...s.queues.map(q => q.latency_ms))
  return (
    <div className="tiles">
      <Tile label="Throughput" value={short(Math.round(r.runs_per_second * 10) / 10)} unit="runs/s" note={`${rate(r.read_per_second) || '0/s'} messages read`} history={numbers(a => a.runs)} to={link('jobs', '', { order: '-ran', all: 'true' })} />
      <Tile label="Latency: queued" value={secs(r.waited.p95_seconds)} unit="p95" note={`p50 ${secs(r.waited.p50_seconds)}`} history={numbers(a => a.waited.p95_seconds)} to={link('queues')} />
      <Tile label="Latency: run" value={secs(r.took.p95_seconds)} unit="p95" note={`p50 ${secs(r.took.p50_seconds)}`} history={numbers(a => a.took.p95_seconds)} to={link('jobs', '', { order: '-ran', all: 'true' })} />
      <Tile label="Failed" value={short(s.failed)} unit="jobs" note={r.failed_per_second > 0 ? `${rate(r.failed_per_second)} runs fail` : 'no run fails now'} history={numbers(a => a.failed)} to={link('jobs', '', { status: 'failed', all: 'true' })} bad={s.failed > 0} />
      <Tile label="Ready" value={short(ready)} unit="jobs" note={[ready ? `the first for ${span(late)}` : '', limited ? `${num(limited)} ${limited === 1 ? 'waits' : 'wait'} for a limit` : ''].filter(Boolean).join(', ') || 'none waits'} history={histories.ready} to={link('queues')} bad={late > 30_000} />
      <Tile label="Running" value={num(s.running)} unit={`of ${num(slots)}`} note="slots of workers" history={histories.running} to={link('jobs', '', { status: 'running', all: 'true' })} />
      <Tile label="Suspended" value={asleep === undefined ? '–' : short(asleep)} unit="jobs" note={`in ${num(s.roots)} ${s.roots === 1 ? 'tree' : 'trees'}`} history={histories.asleep} to={link('jobs', '', { status: 'suspended', all: 'true' })} />
      <Tile label="Workers alive" value={num(s.engines.length)} note={s.engines.some(e => e.stopping) ? 'some are stopping' : `${num(s.queues.length)} ${s.queues.length === 1 ? 'queue' : 'queues'}`} history={histories.engines} to={link('queues')} bad={s.engines.length === 0} />
    </div>
  )
}

export function Overview(): ReactNode {
  const stats = usePoll<Stats>('v1/stats', 1000)
  const s = stats.data
  const failed = usePoll<JobPage>(s && s.failed > 0 ? 'v1/jobs?status=failed&all=true&limit=50' : null, 3000)
  const retrying = usePoll<JobPage>('v1/jobs?status=scheduled,queued&all=true&limit=50', 4000)
  const blocked = usePoll<JobPage>('v1/jobs?blocked=true&limit=5', 4000)
  const trees = usePoll<JobPage>('v1/jobs?status=suspended&limit=100', 4000)
  const dead = usePoll<DeadLetters>(s && s.dead > 0 ? 'v1/dead?limit=5' : null, 5000)
  const letters = usePoll<DeadCount>(s && s.dead > 0 ? 'v1/dead/count' : null, 5000).data
  const count = usePoll<{ count: number }>('v1/count?status=suspended&all=true', 10_000)
  const newest = usePoll<JobPage>('v1/jobs?limit=8&order=-ran', 3000)
  const { mayAct } = useWho()
  const named = useNames(dead.data?.letters.map(l => l.job) ?? [])
  if (!s) return <div className="view"><h1>Overview</h1><Problem text={stats.error} />{!stats.error && <p className="faint">Loading…</p>}</div>
  const attention = causes({ stats: s, failed: failed.data, retrying: retrying.data, blocked: blocked.data, trees: trees.data, dead: dead.data, letters }, named)
  const ready = s.queues.reduce((n, q) => n + q.pending, 0)
  const limited = s.queues.reduce((n, q) => n + q.limited, 0)
  const slots = s.engines.reduce((n, e) => n + e.concurrency, 0)
  return (
    <div className="view">
      <div className="head"><h1>Overview</h1><span className="faint">namespace <bdi>{s.namespace}</bdi></span>{letters && letters.letters > 0 && <a className="dead-mark" href={link('dead')} title="Messages that could not be handled: look at them, requeue or discard them">† {deadWords(letters.letters, letters.more)}</a>}<span className="grow" />{mayAct && <a className="button" href={link('start')}>Start a graph</a>}</div>
      <Tiles s={s} ready={ready} limited={limited} slots={slots} asleep={count.data?.count} />
      <div className="columns">
        <div>
          <section aria-labelledby="attention">
            <h2 id="attention">Needs attention first</h2>
            {attention.length === 0 && <Empty title="Nothing does."><p>Failed jobs, poison messages, dead letters, blocked and throttled jobs, paused and late queues would be here.</p></Empty>}
            <ul className="list causes">
              {attention.map(c => (
                <li key={c.key} data-kind={c.kind}><div><p>{c.what}</p><p className="faint clip">{c.why}</p></div><a className="button" href={c.to}>{c.verb}</a></li>
              ))}
            </ul>
          </section>
          <section aria-labelledby="newest">
            <h2 id="newest">Ran last</h2>
            {newest.data?.jobs.length === 0 && <Empty title="No jobs yet."><p>{mayAct && <><a href={link('start')}>Start a graph</a> here. </>}<code>weir init</code> writes a first graph, and says how to run it.</p></Empty>}
            <ul className="list">
              {newest.data?.jobs.map(j => (
                <li key={j.id}>
                  <div><p><JobLink id={j.id} name={j.aliases?.[0] ?? j.name ?? j.type} tree /> <span className="faint"><bdi>{j.type}</bdi></span></p><p className="faint clip"><Time at={j.ran_at ?? j.created_at} />{j.reason && <> · <Reason text={j.reason} /></>}</p></div>
                  <Status of={j.status} idle={isIdle(j.status, j.reason)} />
                </li>
              ))}
            </ul>
          </section>
        </div>
        <div className="charts"><Suspense fallback={<><div className="card tall" /><div className="card tall" /></>}><Charts stats={s} /></Suspense></div>
      </div>
    </div>
  )
}
