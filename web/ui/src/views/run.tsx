import type { ReactNode } from 'react'
import { useWho } from '../data'
import { num, pretty } from '../format'
import { link } from '../route'
import { Words } from '../parts/words'
import type { Movement, RunEntry } from '../types'
import { JobName, useNames, type NameOf } from '../parts/names'

/** The trace that something belongs to, as a link to the viewer of traces if the server was told of one. */
export function TraceLink({ id }: { id: string | undefined }): ReactNode {
  const { traceURL } = useWho()
  if (!id || !/^[0-9a-f]{32}$/.test(id)) return null
  if (!traceURL) return <>trace <code>{id}</code></>
  return <a href={traceURL.replaceAll('{trace_id}', id)} target="_blank" rel="noreferrer noopener">trace <code>{id.slice(0, 8)}…</code> ↗</a>
}

/** The ID of the trace that a context has. */
export function traceOf(context: Movement['context']): string | undefined {
  const parent = context?.['traceparent']
  return typeof parent === 'string' ? parent.slice(3, 35) : undefined
}

export const originLink = (job: string, dir: string, port: string, n: number): string => link('job', job, { origin: `${dir}.${port}.${n}` })

const shown = 3

/** Messages that passed a port together, and where each came from. */
function Passed({ m, own, name }: { m: Movement; own: string; name: NameOf }): ReactNode {
  const at = m.from ?? 0
  const numbered = m.from !== undefined
  const where = m.job === own ? m.port : `${name(m.job).text}.${m.port}`
  return (
    <li>
      <span>{num(m.n)} {m.n === 1 ? 'message' : 'messages'} of <bdi>{where}</bdi></span>
      {(m.data ?? []).slice(0, shown).map((d, i) => <pre key={i} tabIndex={0} aria-label={`Message of ${where}`}>{pretty(d, 2000)}</pre>)}
      {(m.data?.length ?? 0) > shown && <span className="faint"> and {num(m.n - shown)} more</span>}
      {numbered && name(m.job).there && <a className="from" href={originLink(m.job, m.dir, m.port, at)}>Where {m.n > 1 ? `#${num(at)}` : 'it'} came from</a>}
    </li>
  )
}

/** All that is known of a run: what it read and wrote, where that went, and how it failed. */
export function RunDetail({ run, job }: { run: RunEntry; job: string }): ReactNode {
  const sent = run.sent ?? []
  const name = useNames([...run.read ?? [], ...run.write ?? [], ...sent].map(m => m.job))
  return (
    <div className="run-detail">
      {run.error && <pre className="error" tabIndex={0} aria-label="Error"><Words text={run.error.slice(0, 20_000)} raw /></pre>}
      {run.stack && <Stack text={run.stack} />}
      {run.read && <><p className="run-part">Read</p><ul>{run.read.map((m, i) => <Passed key={i} m={m} own={job} name={name} />)}</ul></>}
      {run.write && <><p className="run-part">Wrote</p><ul>{run.write.map((m, i) => <Passed key={i} m={{ ...m, from: undefined }} own={job} name={name} />)}</ul></>}
      {sent.length > 0 && <p className="faint">to {sent.map((m, i) => <span key={i}>{i > 0 && ', '}<JobName id={m.job} of={name(m.job)} />.<bdi>{m.port}</bdi> as #{num(m.from ?? 0)}{m.n > 1 && `–${num((m.from ?? 0) + m.n - 1)}`}</span>)}</p>}
      {run.groups?.map((g, i) => <RunDetail key={i} run={g} job={job} />)}
      {!run.read && !run.write && !run.error && !run.groups && <p className="faint">It read and wrote nothing.</p>}
    </div>
  )
}

/** Where in the code something failed; folded, as most want the message alone. */
export function Stack({ text }: { text: string }): ReactNode {
  return <details className="stack"><summary>Stack</summary><pre tabIndex={0} aria-label="Stack">{text.slice(0, 40_000)}</pre></details>
}

function counts(all: Movement[] | undefined): string {
  return (all ?? []).map(m => `${num(m.n)} of ${m.port}`).join(', ')
}

/** A run in a few words. */
export function runWords(run: RunEntry): string {
  const who = run.by ? `${run.by}` : `run ${num(run.step)}`
  const all = run.groups ? { read: run.groups.flatMap(g => g.read ?? []).concat(run.read ?? []), write: run.groups.flatMap(g => g.write ?? []).concat(run.write ?? []) } : run
  const did = [counts(all.read) && `read ${counts(all.read)}`, counts(all.write) && `wrote ${counts(all.write)}`].filter(Boolean).join(' → ')
  return `${who}: ${did || (run.error ? 'failed' : 'nothing read or written')}`
}
