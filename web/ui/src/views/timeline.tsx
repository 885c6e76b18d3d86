import './job.css'
import { useCallback, useEffect, useMemo, useState, type KeyboardEvent, type ReactNode } from 'react'
import { enc } from '../api'
import { usePoll } from '../data'
import { num, span } from '../format'
import { Empty, Problem, Time } from '../parts/basics'
import { link, type Route } from '../route'
import type { Job, LogLine, LogPage, RunEntry } from '../types'
import { areNamed, JobName, useNames, type NameOf } from '../parts/names'
import { RunDetail, runWords } from './run'
import { useZoom } from './zoom'

const maxLanes = 40
const single = 6 // jobs with one run, and jobs that were removed, that have a lane each; more, such as children that runs spawn, share one
const pageSize = 400 // entries of the log at a time
const wide = 1000 // units of a lane, whatever its width

interface Bar { from: number; to: number; run: RunEntry; at: string; job: string }
interface Lane { job: string; jobs: number; gone?: boolean; bars: Bar[]; failed: number; ms: number }

/** Several lanes as one, called by the first of its jobs. */
function together(lanes: Lane[]): Lane {
  return {
    job: lanes[0]?.job ?? '', jobs: lanes.length, bars: lanes.flatMap(l => l.bars).sort((a, b) => a.to - b.to),
    failed: lanes.reduce((n, l) => n + l.failed, 0), ms: lanes.reduce((n, l) => n + l.ms, 0),
  }
}

const number = (id: string): number => Number(id.split('.')[1] ?? 0)

/** Those that pass, and the others. */
function parted<T>(all: T[], is: (one: T) => boolean): [T[], T[]] {
  return [all.filter(is), all.filter(one => !is(one))]
}

/** What a lane is called. */
const laneName = (l: Lane, name: NameOf): string => l.jobs === 1 ? name(l.job).text : `${num(l.jobs)} ${l.gone ? 'removed' : 'other'} jobs`

/** The runs of a log by job, in the order in which the jobs were created. What was done from outside is a run without length. */
function lanesOf(lines: LogLine[], name: NameOf): { lanes: Lane[]; from: number; to: number } {
  const byJob = new Map<string, Lane>()
  let [from, to] = [Infinity, -Infinity]
  for (const l of lines) {
    if (!l.run) continue
    const end = Date.parse(l.at)
    const bar = { from: end - (l.run.took_ms ?? 0), to: end, run: l.run, at: l.at, job: l.job }
    const lane = byJob.get(l.job) ?? { job: l.job, jobs: 1, bars: [], failed: 0, ms: 0 }
    byJob.set(l.job, lane)
    lane.bars.push(bar)
    lane.ms += bar.to - bar.from
    if (l.run.error) lane.failed++
    from = Math.min(from, bar.from)
    to = Math.max(to, bar.to)
  }
  const all = [...byJob.values()].sort((a, b) => number(a.job) - number(b.job))
  const [gone, here] = parted(all, l => name(l.job).gone)
  const [few, more] = parted(here, l => l.bars.length === 1)
  const own = [...few.length > single ? more : here, ...gone.length > single ? [] : gone].sort((a, b) => number(a.job) - number(b.job))
  const lanes = own.slice(0, maxLanes)
  const rest = [...own.slice(maxLanes), ...few.length > single ? few : []]
  if (rest.length > 0) lanes.push(together(rest))
  if (gone.length > single) lanes.push({ ...together(gone), gone: true })
  return { lanes, from: Math.min(from, to - 100), to }
}

/** A step for the axis: so that there are some five marks. */
function step(ms: number): number {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000, 86_400_000]
  return steps.find(s => ms / s <= 6) ?? ms / 5
}

/** A time before the end, with as many digits as tell it from the next mark. */
function before(ms: number, by: number): string {
  if (by < 1000) return `−${num(Math.round(ms))} ms`
  return by < 60_000 ? `−${Math.round(ms / 1000)} s` : `−${span(ms)}`
}

interface At { lane: number; bar: number }

/** Runs as bars over time, a lane for each job. */
export function Timeline({ lines: latest, job, onZoom }: { lines: LogLine[]; job: string; onZoom?: () => void }): ReactNode {
  const [at, setAt] = useState<{ job: string; step: number; at: string } | null>(null)
  const jobs = useMemo(() => latest.flatMap(l => l.run ? l.job : []), [latest])
  const name = useNames([...at ? [at.job] : [], ...jobs])
  const [lines, setLines] = useState<LogLine[]>([])
  if (lines !== latest && areNamed(jobs)) setLines(latest) // what came is shown with its names
  const { lanes, from: first, to: last } = lanesOf(lines, name)
  const zoom = useZoom({ from: first, to: last }, 'svg', onZoom)
  if (lanes.length === 0) return null
  const { from, to } = zoom.view
  const length = Math.max(1, to - from)
  const inView = (b: Bar): boolean => b.to >= from && b.from <= to
  const x = (t: number): number => wide * (t - from) / length
  const by = step(length)
  const marks = Array.from({ length: Math.floor(length / by) + 1 }, (_, i) => i * by)
  const place = (): At | null => {
    const is = (b: Bar): boolean => b.job === at?.job && b.at === at.at && b.run.step === at.step
    const lane = at ? lanes.findIndex(l => l.bars.some(is)) : -1
    return lane >= 0 ? { lane, bar: lanes[lane]?.bars.findIndex(is) ?? 0 } : null
  }
  const pick = (p: At): void => {
    const bar = lanes[p.lane]?.bars[p.bar]
    if (bar) { setAt({ job: bar.job, step: bar.run.step, at: bar.at }); zoom.show(bar) }
  }
  const chosen = place()
  const bar = chosen && lanes[chosen.lane]?.bars[chosen.bar]
  const key = (e: KeyboardEvent): void => {
    if (e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey) return
    const now = chosen
    const dir = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key]
    if (e.key === 'Escape') setAt(null)
    if (e.key === '+' || e.key === '=') zoom.nearer(bar?.to)
    else if (e.key === '-') zoom.farther(bar?.to)
    else if (e.key === 'f') zoom.all()
    if (!dir) return
    e.preventDefault()
    if (!now) { pick({ lane: 0, bar: (lanes[0]?.bars.length ?? 1) - 1 }); return }
    const lane = Math.max(0, Math.min(lanes.length - 1, now.lane + (dir[0] ?? 0)))
    const bars = lanes[lane]?.bars ?? []
    if (lane === now.lane) { pick({ lane, bar: Math.max(0, Math.min(bars.length - 1, now.bar + (dir[1] ?? 0))) }); return }
    const t = lanes[now.lane]?.bars[now.bar]?.to ?? 0 // the run of the other lane that ended next to it
    pick({ lane, bar: bars.reduce((best, b, i) => Math.abs(b.to - t) < Math.abs((bars[best]?.to ?? 0) - t) ? i : best, 0) })
  }
  return (
    <>
      <div className="timeline" role="application" aria-label="Runs over time: arrows go from run to run; the log tells the same" tabIndex={0} onKeyDown={key} {...zoom.pull}>
        <div className="lane axis" aria-hidden="true"><span /><span className="marks">{marks.map(m => <span key={m} ref={el => { if (el) el.style.right = `${100 * m / length}%` }}>{m ? before(m, by) : <Time at={new Date(to).toISOString()} />}</span>)}</span></div>
        {lanes.map((l, i) => (
          <div className="lane" key={l.jobs === 1 ? l.job : l.gone ? 'removed' : 'others'} data-lane={l.job}>
            <span className="lane-name clip">{l.jobs > 1 ? laneName(l, name) : l.job === job ? <bdi>{name(l.job).text}</bdi> : <JobName id={l.job} of={name(l.job)} />}</span>
            <svg viewBox={`0 0 ${wide} 20`} preserveAspectRatio="none" role="img" aria-label={`${laneName(l, name)}: ${num(l.bars.length)} runs${l.failed ? `, ${num(l.failed)} failed` : ''}, ${span(l.ms)} in all`}>
              {marks.map(m => <line key={m} x1={wide - wide * m / length} x2={wide - wide * m / length} y1={0} y2={20} />)}
              {zoom.marked && <rect className="marked" x={x(zoom.marked.from)} width={x(zoom.marked.to) - x(zoom.marked.from)} y={0} height={20} />}
              {l.bars.map((b, k) => inView(b) && (
                <rect key={k} x={Math.max(0, Math.min(wide - 3, x(b.from)))} y={3} height={14} width={Math.max(3, Math.min(wide, x(b.to)) - Math.max(0, x(b.from)))} rx={1.5}
                  className={`bar ${b.run.error ? 'failed' : b.run.by ? 'outside' : ''} ${chosen?.lane === i && chosen.bar === k ? 'chosen' : ''}`} onClick={() => pick({ lane: i, bar: k })}>
                  <title>{`${runWords(b.run)}${b.run.took_ms ? `, ${span(b.run.took_ms)}` : ''}`}</title>
                </rect>
              ))}
            </svg>
          </div>
        ))}
      </div>
      <div className="faint legend"><span className="key ran" /> run <span className="key failed" /> failed <span className="key outside" /> from outside · <span>{num(lanes.reduce((n, l) => n + l.bars.filter(inView).length, 0))} runs{zoom.zoomed ? ` of ${num(lines.filter(l => l.run).length)}` : ''} within {span(length)}</span>
        <span className="grow" /><span className="row"><button type="button" aria-label="Nearer" title="Nearer: or mark a part with the pointer" onClick={() => zoom.nearer(bar?.to)}>+</button><button type="button" aria-label="Farther" disabled={!zoom.zoomed} onClick={() => zoom.farther(bar?.to)}>−</button><button type="button" aria-label="All of it" disabled={!zoom.zoomed} onClick={zoom.all}>⤢</button></span>
      </div>
      {bar && chosen && (
        <aside className="run-chosen" aria-label="Selected run" aria-live="polite">
          <div className="head"><h2><JobName id={bar.job} of={name(bar.job)} /> {bar.run.by ? <>by <bdi>{bar.run.by}</bdi></> : `run ${num(bar.run.step)}`}</h2><span className="faint"><Time at={bar.at} /> · {bar.run.took_ms ? span(bar.run.took_ms) : 'under 1 ms'}</span><span className="grow" /><button type="button" onClick={() => setAt(null)}>Close</button></div>
          <RunDetail run={bar.run} job={bar.job} />
        </aside>
      )}
    </>
  )
}

/** Runs of a whole tree over time. */
export function TimelineView({ route }: { route: Route }): ReactNode {
  const [live, setLive] = useState(true)
  const [before, setBefore] = useState<string[]>([]) // the pages that were gone back, by where each ends
  const at = before.at(-1) ?? ''
  const job = usePoll<Job>(`v1/jobs/${enc(route.id)}`, 5000)
  const log = usePoll<LogPage>(`v1/jobs/${enc(route.id)}/log?limit=${pageSize}&tree=true${at && `&before=${enc(at)}`}`, at ? 60_000 : 1500)
  const [page, setPage] = useState<LogPage | null>(null)
  const [shownAt, setShownAt] = useState('')
  useEffect(() => { if (log.data && (live || shownAt !== at)) { setPage(log.data); setShownAt(at) } }, [live, log.data, at, shownAt])
  const seen = page?.entries
  const older = (): void => { if (page?.earlier) { setLive(false); setBefore(b => [...b, page.earlier ?? '']) } }
  const newer = (): void => setBefore(b => b.slice(0, -1))
  const stop = useCallback(() => setLive(false), [])
  const title = job.data?.aliases?.[0] ?? job.data?.name ?? job.data?.type ?? 'Timeline'
  const gone = log.data?.trimmed?.[0]
  return (
    <div className="view">
      <div className="head">
        <h1><a href={link('job', route.id)}><bdi>{title}</bdi></a></h1><span className="faint">timeline</span>
        <span className="grow" />
        <button type="button" disabled={!page?.earlier || shownAt !== at} onClick={older}>Older</button>
        <button type="button" disabled={before.length === 0} onClick={newer}>Newer</button>
        <label className="check"><input type="checkbox" checked={live} onChange={e => { setLive(e.target.checked); if (e.target.checked) setBefore([]) }} /> live</label>
        <a className="button" href={link('tree', route.id)}>Tree</a>
      </div>
      <Problem text={log.error || job.error} />
      {seen && at && !seen.some(l => l.run) && <p className="faint">No run is among these {num(seen.length)} entries of the log.</p>}
      {seen && !at && !seen.some(l => l.run) && <Empty title="Nothing has run yet."><p>Runs are bars here, a lane for each job of the tree. <code>weir send {job.data?.aliases?.[0] ?? route.id} PORT MESSAGE</code> gives it something to do.</p></Empty>}
      {!page && !log.error && <p className="faint">Reading the log…</p>}
      {seen && <Timeline lines={seen} job={route.id} onZoom={stop} />}
      {gone && <p className="faint">The log begins <Time at={gone.since} />: its first {num(gone.entries)} entries were trimmed.</p>}
    </div>
  )
}
