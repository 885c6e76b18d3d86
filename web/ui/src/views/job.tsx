import { useEffect, useMemo, useState, type ReactNode } from 'react'
import { act, enc } from '../api'
import { usePoll, useWho, type Loaded } from '../data'
import { isIdle, num, pretty, span } from '../format'
import { useActing } from '../parts/acting'
import { DeadMark, Empty, JobLink, Limited, Problem, Status, Time, type Asking } from '../parts/basics'
import { idsIn, Words } from '../parts/words'
import { go, link, setQuery, type Route } from '../route'
import type { Because, Job, Json, LogLine, LogPage, Progress } from '../types'
import './job.css'
import { Errors } from './errors'
import { OriginDialog, parseOrigin } from './origin'
import { LockAct, LockNote } from './lock'
import { PortPanel } from './port'
import { JobName, useNames } from '../parts/names'
import { RunDetail, runWords, TraceLink } from './run'
import { Timeline } from './timeline'

const shownLines = 100

/** How far a job says that it is. */
function Far({ p }: { p: Progress }): ReactNode {
  const total = p.total ?? 0
  const words = [total > 0 ? `${num(p.done)} of ${num(total)}` : p.done > 0 ? num(p.done) : '', p.text ?? ''].filter(Boolean).join(' ')
  return <p className="row far">{total > 0 && <progress aria-label="How far it is" max={total} value={Math.min(p.done, total)} />}<bdi>{words}</bdi></p>
}

/** What may be done with a job, and what it means. */
function actsOf(j: Job): Asking[] {
  const path = `v1/jobs/${enc(j.id)}`
  const name = j.aliases?.[0] ?? j.name ?? j.id
  const below = Object.keys(j.children ?? {}).length > 0
  const failed = j.status === 'failed'
  const ended = j.status === 'terminated'
  const all: Asking[] = []
  if (!failed && !ended && !below) {
    all.push({ title: `Run ${name}?`, text: 'A run begins now, whatever the job waits for.', verb: 'Run', run: async () => { await act('POST', `${path}/run`, {}); return 'A run was asked for' } })
  }
  if (failed || below) {
    all.push({
      title: `Retry ${name}?`, text: below ? 'All failed jobs of its tree get another run now.' : 'It gets another run now. What its failed run read is unread still, so nothing is done twice.', verb: 'Retry',
      run: async () => { const r = await act<{ retried: number }>('POST', `${path}/retry`, {}); return `${num(r?.retried ?? 0)} retried` },
    })
  }
  if (!ended) {
    all.push({
      title: `Terminate ${name}?`, text: below ? 'A run in progress finishes, then this job and all below it end. What waits in their ports is not handled.' : 'A run in progress finishes, then the job ends. What waits in its ports is not handled.', verb: 'Terminate', danger: true,
      run: async () => { await act('POST', `${path}/terminate`, { recursive: true }); return 'It ends' },
    })
  }
  if (ended) {
    all.push({
      title: `Delete ${name}?`, text: 'It is removed with all below it: messages, state and logs. This cannot be undone.', verb: 'Delete', danger: true,
      run: async () => { await act('DELETE', path); go(link('jobs')); return 'Deleted' },
    })
  }
  return all
}

function Why({ id }: { id: string }): ReactNode {
  const why = usePoll<Because[]>(`v1/jobs/${enc(id)}/why`, 2000)
  const named = useNames((why.data ?? []).flatMap(b => [b.job, ...idsIn(b.text)]))
  return (
    <section className="why" aria-label="Why it waits">
      {why.data?.map((b, i) => (
        <div key={`${b.job} ${i}`} data-level={Math.min(b.level, 4)}>
          <p className={i ? 'faint' : 'first'}><Words text={b.text} named={named} />{b.next && <> · goes on <Time at={b.next} ahead /></>}</p>
          {b.command && <code className="command">{b.command}</code>}
          {b.job !== id && b.job !== why.data?.[i - 1]?.job && <p>Open <JobName id={b.job} of={named(b.job)} /></p>}
        </div>
      ))}
      <Problem text={why.error} />
      {!why.data && !why.error && <p className="first faint">Looking why…</p>}
    </section>
  )
}

/** Runs and notes, the latest first; each run opens to what it read and wrote. */
function Log({ id, called, log }: { id: string; called: string; log: Loaded<LogPage> }): ReactNode {
  const lines: LogLine[] = useMemo(() => [...log.data?.entries ?? []].reverse(), [log.data])
  const name = useNames(lines.map(l => l.job))
  const [open, setOpen] = useState('')
  const gone = log.data?.trimmed?.[0]
  return (
    <section aria-labelledby="log">
      <h2 id="log">Log</h2>
      <Problem text={log.error} />
      {log.data && lines.length === 0 && <Empty title="No runs yet."><p>What runs read, wrote and logged is shown here. <code>weir log {called} --follow</code> shows it in a terminal.</p></Empty>}
      <ol className="log">
        {lines.slice(0, shownLines).map(l => {
          const key = `${l.at} ${l.job} ${l.run?.step ?? ''} ${l.run ? '' : pretty(l.note, 80)}`
          return (
            <li key={key}>
              <span className="faint"><Time at={l.at} /></span>
              <div>
                {l.job !== id && <><JobName id={l.job} of={name(l.job)} /> </>}
                {l.run ? <button type="button" className="plain" aria-expanded={open === key} onClick={() => setOpen(open === key ? '' : key)}><bdi>{runWords(l.run)}</bdi>{l.run.took_ms ? <span className="faint"> · {span(l.run.took_ms)}</span> : null}</button> : <code><bdi>{pretty(l.note, 2000)}</bdi></code>}
                {l.run?.error && open !== key && <span className="error"> <Words text={l.run.error.slice(0, 300)} raw /></span>}
                {l.run && open === key && <RunDetail run={l.run} job={l.job} />}
              </div>
            </li>
          )
        })}
      </ol>
      {gone && <p className="faint">The log begins <Time at={gone.since} />: its first {num(gone.entries)} entries were trimmed.</p>}
    </section>
  )
}

function Ports({ job }: { job: Job }): ReactNode {
  const [open, setOpen] = useState('')
  const all: ['in' | 'out', string, Job['in'][string]][] = [
    ...Object.entries(job.in).map(([n, p]) => ['in', n, p] as ['in', string, typeof p]),
    ...Object.entries(job.out).map(([n, p]) => ['out', n, p] as ['out', string, typeof p]),
  ]
  return (
    <section aria-labelledby="ports">
      <h2 id="ports">Ports</h2>
      {all.length === 0 && <p className="faint">It has none: nothing can be sent to it.</p>}
      <ul className="list">
        {all.map(([dir, name, p]) => {
          const key = `${dir} ${name}`
          const fill = p.limit ? p.size / p.limit : 0
          return (
            <li key={key} className="block">
              <div className="row">
                <button type="button" className="port" aria-expanded={open === key} onClick={() => setOpen(open === key ? '' : key)}>{dir === 'in' ? '←' : '→'} <bdi>{name}</bdi></button>
                <span>{num(p.size)}{p.limit ? ` of ${num(p.limit)}` : ''} waiting</span>
                {p.limit ? <meter min={0} max={1} low={0.6} high={0.85} optimum={0} value={Math.min(1, fill)} aria-label={`${name} is filled to ${Math.round(fill * 100)} %`} /> : null}
                {p.closed && <span className="status">closed</span>}
                {p.default !== null && p.default !== undefined && <code className="clip"><bdi>{pretty(p.default, 80)}</bdi></code>}
              </div>
              {open === key && <PortPanel job={job.id} called={job.aliases?.[0] ?? job.id} dir={dir} name={name} closed={p.closed} size={p.size} />}
            </li>
          )
        })}
      </ul>
    </section>
  )
}

function Facts({ j }: { j: Job }): ReactNode {
  return (
    <dl className="facts">
      <div><dt>Type</dt><dd><bdi>{j.type}</bdi></dd></div><div><dt>Queue</dt><dd><bdi>{j.queue}</bdi></dd></div>
      <div><dt>Created</dt><dd><Time at={j.created_at} />{j.created_by && <> by <bdi>{j.created_by}</bdi></>}</dd></div><div><dt>Ran</dt><dd>{j.ran_at ? <Time at={j.ran_at} /> : 'never'}</dd></div>
      {j.next_at && <div><dt>Goes on</dt><dd><Time at={j.next_at} ahead /></dd></div>}
      {j.try_count > 0 && <div><dt>Failed tries</dt><dd>{num(j.try_count)}</dd></div>}
      {j.parent && <div><dt>Parent</dt><dd><ParentLink id={j.parent} /></dd></div>}
      {j.expires_at && <div><dt>Removed</dt><dd><Time at={j.expires_at} ahead /></dd></div>}
      {j.trace && <div><dt>Created in</dt><dd><TraceLink id={j.trace} /></dd></div>}
      <div><dt>ID</dt><dd><code>{j.id}</code></dd></div>
    </dl>
  )
}

function ParentLink({ id }: { id: string }): ReactNode {
  const name = useNames([id])
  return <JobName id={id} of={name(id)} />
}

/** Values by their names: the state, or the arguments. */
function Values({ id, title, of }: { id: string; title: string; of: Json | undefined }): ReactNode {
  if (of === null || typeof of !== 'object' || Array.isArray(of) || Object.keys(of).length === 0) return null
  const all = Object.entries(of)
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <dl className="state">{all.slice(0, 200).map(([k, v]) => <div key={k}><dt><bdi>{k}</bdi></dt><dd><pre tabIndex={0} aria-label={`${title} ${k}`}>{pretty(v, 4000)}</pre></dd></div>)}</dl>
      {all.length > 200 && <p className="faint">and {num(all.length - 200)} more</p>}
    </section>
  )
}

export function JobView({ route }: { route: Route }): ReactNode {
  const id = route.id
  const job = usePoll<Job>(`v1/jobs/${enc(id)}`, 1500)
  const log = usePoll<LogPage>(`v1/jobs/${enc(id)}/log?limit=200`, 2000)
  const { mayAct } = useWho()
  const { ask, done } = useActing()
  const { again } = job
  useEffect(() => { if (done) again() }, [done, again])
  const j = job.data
  if (!j) return <div className="view"><h1>Job</h1><Problem text={job.error} />{job.error ? <p className="faint"><a href={link('jobs')}>All jobs</a>, or <code>weir jobs</code> in a terminal.</p> : <p className="faint">Loading…</p>}</div>
  const name = j.aliases?.[0] ?? j.name ?? j.type
  const children = Object.entries(j.children ?? {})
  const which = parseOrigin(route.query.get('origin'))
  return (
    <div className="view job">
      <div className="head">
        <h1><bdi>{name}</bdi></h1><Status of={j.status} idle={isIdle(j.status, j.reason)} /><Limited status={j.status} reason={j.reason} /><DeadMark job={j.id} n={j.out['errors']?.size} />
        <span className="grow" />
        <a className="button" href={link('tree', j.id)}>Tree</a>
        <a className="button" href={link('timeline', j.id)}>Timeline</a>
        {mayAct && children.length > 0 && !j.parent && j.status !== 'terminated' && <a className="button" href={link('patch', j.id)}>Patch</a>}
        {mayAct && <LockAct job={j} name={name} />}
        {mayAct && actsOf(j).map(a => <button key={a.verb} type="button" className={a.danger ? 'danger' : ''} onClick={() => ask(a)}>{a.verb}…</button>)}
      </div>
      <LockNote lock={j.lock} />
      {j.progress && <Far p={j.progress} />}
      <Why id={j.id} />
      <Facts j={j} />
      {Object.keys(j.labels ?? {}).length > 0 && <p className="labels">{Object.entries(j.labels ?? {}).map(([k, v]) => <a key={k} className="label" href={link('jobs', '', { label: `${k}=${v}` })}><bdi>{k}={v}</bdi></a>)}</p>}
      <Errors job={j.id} errors={j.errors ?? []} />
      <Ports job={j} />
      {(log.data?.entries.some(l => l.run) ?? false) && (
        <section aria-labelledby="runs"><h2 id="runs">Runs</h2><Timeline lines={log.data?.entries ?? []} job={j.id} /></section>
      )}
      {children.length > 0 && (
        <section aria-labelledby="below"><h2 id="below">Children</h2>
          <p className="labels">{children.slice(0, 100).map(([n, c]) => <span key={n} className="label"><JobLink id={c} name={n} /></span>)}{children.length > 100 && <span className="faint"> and {num(children.length - 100)} more: <a href={link('tree', j.id, { as: 'list' })}>see the tree</a></span>}</p>
        </section>
      )}
      <Values id="state" title="State" of={j.state} />
      <Values id="args" title="Arguments" of={j.args} />
      <Log id={j.id} called={j.aliases?.[0] ?? j.id} log={log} />
      {which && <OriginDialog job={j.id} name={j.name ?? name} which={which} onClose={() => setQuery(route, { origin: '' })} />}
    </div>
  )
}
