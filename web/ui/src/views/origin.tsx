import { useState, type ReactNode } from 'react'
import { enc } from '../api'
import { usePoll } from '../data'
import { line, num, pretty, span } from '../format'
import { Dialog, Problem, Time } from '../parts/basics'
import { link } from '../route'
import type { Movement, Origin, RunEntry } from '../types'
import { JobName, useNames, type NameOf } from '../parts/names'
import { TraceLink, traceOf } from './run'

/** A message: the number of all that ever came to a port. */
export interface Which { dir: 'in' | 'out'; port: string; n: number }

/** Reads what originLink wrote. */
export function parseOrigin(text: string | null): Which | null {
  const m = /^(in|out)\.(.+)\.(\d{1,15})$/.exec(text ?? '')
  return m ? { dir: m[1] as 'in' | 'out', port: m[2] ?? '', n: Number(m[3]) } : null
}

export const originPath = (job: string, w: Which): string => `v1/jobs/${enc(job)}/ports/${w.dir}/${enc(w.port)}/trace?message=${w.n}`

/** What a run, and the groups in it, read or wrote. */
const both = (run: RunEntry, what: 'read' | 'write'): Movement[] => [...run[what] ?? [], ...(run.groups ?? []).flatMap(g => g[what] ?? [])]

const few = 3 // messages of a step that are shown before the others are asked for

/** Messages that a step of the path read or wrote, a line each; a long one opens. */
function Moved({ verb, all, own, name }: { verb: string; all: Movement[]; own: string; name: NameOf }): ReactNode {
  const [more, setMore] = useState(false)
  return all.map((m, i) => {
    const where = m.job === own ? m.port : `${name(m.job).text}.${m.port}`
    const data = m.data ?? []
    return (
      <div className="moved" key={i}>
        <span className="faint">{verb} {m.n > 1 ? `${num(m.n)} of ` : ''}<bdi>{where}</bdi></span>
        <div>
          {data.slice(0, more ? undefined : few).map((d, k) => {
            const text = line(d)
            return text.length < 90 ? <code key={k}><bdi>{text}</bdi></code> : <details key={k}><summary><code><bdi>{text.slice(0, 90)}…</bdi></code></summary><pre tabIndex={0} aria-label="Message">{pretty(d, 20_000)}</pre></details>
          })}
          {data.length === 0 && <span className="faint">too large for the log</span>}
          {data.length > few && !more && <button type="button" className="plain" onClick={() => setMore(true)}>and {num(data.length - few)} more</button>}
        </div>
      </div>
    )
  })
}

/** Where a message came from: the runs that led to it, the latest first, back to who sent the first message from outside. */
export function OriginDialog({ job, name, which, onClose }: { job: string; name: string; which: Which; onClose: () => void }): ReactNode {
  const origin = usePoll<Origin>(originPath(job, which), 60_000)
  const o = origin.data
  const entries = o?.entries ?? []
  const nameOf = useNames([...entries.map(e => e.job), ...(o?.missing ?? []).map(m => m.job)])
  const tree = job.split('.')[0] ?? job
  return (
    <Dialog title={`Where message #${num(which.n)} of ${name}.${which.port} came from`} onClose={onClose} wide>
      <Problem text={origin.error} />
      {!o && !origin.error && <p className="faint">Reading the log…</p>}
      {o && (
        <ol className="origin">
          <li className="origin-end"><b>#{num(which.n)} of <bdi>{name}.{which.port}</bdi></b></li>
          {entries.map((e, i) => (
            <li key={i} className={e.run?.by && !e.run.read ? 'origin-outside' : ''}>
              <p className="origin-head">
                {e.run?.by && !e.run.read ? <><b><bdi>{e.run.by}</bdi></b> sent to <JobName id={e.job} of={nameOf(e.job)} /></> : <><b><JobName id={e.job} of={nameOf(e.job)} /></b> run {num(e.run?.step ?? 0)}</>}
                <span className="faint"> · <Time at={e.at} />{e.run?.took_ms ? <> · {span(e.run.took_ms)}</> : null}</span>
                {traceOf(e.run?.write?.[0]?.context) && <span> · <TraceLink id={traceOf(e.run?.write?.[0]?.context)} /></span>}
              </p>
              {e.run && <Moved verb="read" all={both(e.run, 'read')} own={e.job} name={nameOf} />}
              {e.run && <Moved verb="wrote" all={both(e.run, 'write')} own={e.job} name={nameOf} />}
            </li>
          ))}
          {(o.missing ?? []).map((m, i) => <li key={`m${i}`} className="origin-missing">The log does not say who sent {m.n > 1 ? `#${num(m.from ?? 0)}–${num((m.from ?? 0) + m.n - 1)}` : `#${num(m.from ?? 0)}`} of <JobName id={m.job} of={nameOf(m.job)} />.<bdi>{m.port}</bdi></li>)}
        </ol>
      )}
      {o?.trimmed && <p className="faint">The log of the tree begins <Time at={o.trimmed.since} />: its first {num(o.trimmed.entries)} entries were trimmed. <code>weir retention</code> says how long it is kept.</p>}
      {o?.more && <p className="faint">More runs led to it: these are the latest.</p>}
      <div className="row end">
        {o && entries.length > 0 && <a className="button" href={link('tree', tree, { origin: `${job} ${which.dir}.${which.port}.${which.n}` })}>Show it in the tree</a>}
        <button type="button" className="primary" onClick={onClose}>Close</button>
      </div>
    </Dialog>
  )
}
