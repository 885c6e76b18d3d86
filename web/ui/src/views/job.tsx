import { useEffect, useState, type ReactNode } from 'react'
import { act, enc } from '../api'
import { usePoll, useWho } from '../data'
import { num, pretty } from '../format'
import { useActing } from '../parts/acting'
import { Empty, JobLink, Problem, Status, Time, Words, type Asking } from '../parts/basics'
import { go, link } from '../route'
import type { Because, Job, Json, LogLine, LogPage } from '../types'
import { PortPanel } from './port'

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
  return (
    <section className="why" aria-label="Why it waits">
      {why.data?.map((b, i) => (
        <p key={`${b.job} ${i}`} className={i ? 'faint' : 'first'} data-level={Math.min(b.level, 4)}>
          <Words text={b.text} />{b.job !== id && i > 0 && <> <JobLink id={b.job} name="see it" /></>}{b.next && <> · goes on <Time at={b.next} /></>}{b.command && <> · <code>{b.command}</code></>}
        </p>
      ))}
      <Problem text={why.error} />
      {!why.data && !why.error && <p className="first faint">Looking why…</p>}
    </section>
  )
}

/** Messages that a run moved, by port. */
function moved(v: Json | undefined): string {
  if (!Array.isArray(v)) return ''
  return v.map(m => m !== null && typeof m === 'object' && !Array.isArray(m) ? `${String(m['port'])} ${String(m['n'])}` : '').filter(Boolean).join(', ')
}

/** A run in a few words. */
function words(run: Record<string, Json>): string {
  const read = moved(run['read'])
  const wrote = moved(run['write'])
  const by = typeof run['by'] === 'string' && run['by'] ? ` by ${run['by']}` : ''
  const did = [read && `read ${read}`, wrote && `wrote ${wrote}`].filter(Boolean).join(' → ')
  return `run ${String(run['step'] ?? '')}${by}: ${did || (run['error'] ? 'failed' : 'nothing read or written')}`
}

function Log({ id }: { id: string }): ReactNode {
  const log = usePoll<LogPage>(`v1/jobs/${enc(id)}/log?limit=200`, 2000)
  const lines: LogLine[] = [...log.data?.entries ?? []].reverse()
  return (
    <section aria-labelledby="log">
      <h2 id="log">Runs and log</h2>
      <Problem text={log.error} />
      {log.data && lines.length === 0 && <Empty title="No runs yet."><p>What runs read, wrote and logged is shown here.</p></Empty>}
      <ol className="log">
        {lines.map((l, i) => (
          <li key={`${l.at} ${i}`}>
            <span className="faint"><Time at={l.at} /></span>
            <span>
              {l.job !== id && <><JobLink id={l.job} /> </>}
              {l.run ? <bdi>{words(l.run)}</bdi> : <code><bdi>{pretty(l.note, 2000)}</bdi></code>}
              {typeof l.run?.['error'] === 'string' && <span className="error"> <bdi>{l.run['error']}</bdi></span>}
            </span>
          </li>
        ))}
      </ol>
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
      {all.length === 0 && <p className="faint">It has none.</p>}
      <ul className="list">
        {all.map(([dir, name, p]) => {
          const key = `${dir} ${name}`
          const fill = p.limit ? p.size / p.limit : 0
          return (
            <li key={key} className="block">
              <div className="row">
                <button type="button" className="port" aria-expanded={open === key} onClick={() => setOpen(open === key ? '' : key)}>{dir === 'in' ? '→' : '←'} <bdi>{name}</bdi></button>
                <span>{num(p.size)}{p.limit ? ` of ${num(p.limit)}` : ''} waiting</span>
                {p.limit ? <meter min={0} max={1} low={0.6} high={0.85} optimum={0} value={Math.min(1, fill)} aria-label={`${name} is filled to ${Math.round(fill * 100)} %`} /> : null}
                {p.closed && <span className="status">closed</span>}
                {p.default !== null && p.default !== undefined && <code className="clip"><bdi>{pretty(p.default, 80)}</bdi></code>}
              </div>
              {open === key && <PortPanel job={job.id} dir={dir} name={name} closed={p.closed} size={p.size} />}
            </li>
          )
        })}
      </ul>
    </section>
  )
}

export function JobView({ id }: { id: string }): ReactNode {
  const job = usePoll<Job>(`v1/jobs/${enc(id)}`, 1500)
  const { mayAct } = useWho()
  const { ask, done } = useActing()
  const { again } = job
  useEffect(() => { if (done) again() }, [done, again])
  const j = job.data
  if (!j) return <div className="view"><h1>Job</h1><Problem text={job.error} />{!job.error && <p className="faint">Loading…</p>}</div>
  const name = j.aliases?.[0] ?? j.name ?? j.type
  const children = Object.entries(j.children ?? {})
  const root = j.id
  return (
    <div className="view">
      <div className="head">
        <h1><bdi>{name}</bdi></h1><Status of={j.status} />
        <span className="grow" />
        <a className="button" href={link('tree', root)}>Tree</a>
        {mayAct && actsOf(j).map(a => <button key={a.verb} type="button" className={a.danger ? 'danger' : ''} onClick={() => ask(a)}>{a.verb}…</button>)}
      </div>
      <Why id={j.id} />
      <dl className="facts">
        <div><dt>Type</dt><dd><bdi>{j.type}</bdi></dd></div><div><dt>Queue</dt><dd><bdi>{j.queue}</bdi></dd></div>
        <div><dt>Created</dt><dd><Time at={j.created_at} />{j.created_by && <> by <bdi>{j.created_by}</bdi></>}</dd></div><div><dt>Ran</dt><dd><Time at={j.ran_at} /></dd></div>
        {j.try_count > 0 && <div><dt>Failed tries</dt><dd>{num(j.try_count)}</dd></div>}
        {j.parent && <div><dt>Parent</dt><dd><JobLink id={j.parent} /></dd></div>}
        {j.expires_at && <div><dt>Removed</dt><dd><Time at={j.expires_at} /></dd></div>}
        <div><dt>ID</dt><dd><code>{j.id}</code></dd></div>
      </dl>
      {Object.keys(j.labels ?? {}).length > 0 && <p className="labels">{Object.entries(j.labels ?? {}).map(([k, v]) => <a key={k} className="label" href={link('jobs', '', { label: `${k}=${v}` })}><bdi>{k}={v}</bdi></a>)}</p>}
      {(j.errors?.length ?? 0) > 0 && (
        <section aria-labelledby="errors"><h2 id="errors">Errors</h2>
          <ul className="list">{j.errors?.map((f, i) => <li key={`${f.at} ${i}`} className="block"><p className="faint"><Time at={f.at} />{f.trace && <> · trace <code>{f.trace}</code></>}</p><pre className="error" tabIndex={0} aria-label="Error">{f.message.slice(0, 20_000)}</pre></li>)}</ul>
        </section>
      )}
      <Ports job={j} />
      {children.length > 0 && (
        <section aria-labelledby="below"><h2 id="below">Children</h2>
          <p className="labels">{children.slice(0, 100).map(([n, c]) => <span key={n} className="label"><JobLink id={c} name={n} /></span>)}{children.length > 100 && <span className="faint"> and {num(children.length - 100)} more: see the tree</span>}</p>
        </section>
      )}
      {j.state && Object.keys(j.state).length > 0 && (
        <section aria-labelledby="state"><h2 id="state">State</h2>
          <dl className="state">{Object.entries(j.state).slice(0, 200).map(([k, v]) => <div key={k}><dt><bdi>{k}</bdi></dt><dd><pre tabIndex={0} aria-label={`State ${k}`}>{pretty(v, 4000)}</pre></dd></div>)}</dl>
        </section>
      )}
      <Log id={j.id} />
    </div>
  )
}

