import { useEffect, useState, type ReactNode } from 'react'
import { act, enc } from '../api'
import { usePoll, useWho } from '../data'
import { num, pretty } from '../format'
import { useActing } from '../parts/acting'
import { Problem } from '../parts/basics'
import { SchemaForm } from '../parts/form'
import type { Schema } from '../parts/schema'
import type { Json, Message, Messages } from '../types'
import { originLink, TraceLink, traceOf } from './run'

const pageSize = 10

export interface PortProps { job: string; called: string; dir: 'in' | 'out'; name: string; closed: boolean; size: number }

/** What waits in a port, and what can be done there. */
export function PortPanel({ job, called, dir, name, closed, size }: PortProps): ReactNode {
  const base = `v1/jobs/${enc(job)}/ports/${dir}/${enc(name)}`
  const [first, setFirst] = useState(0) // of those that wait; a page may be shorter than others, as its messages are large
  const peek = usePoll<Messages>(`${base}/messages?limit=${pageSize}&skip=${first}`, 5000)
  const { again } = peek
  useEffect(again, [size, again])
  useEffect(() => { if (first > 0 && peek.data?.messages.length === 0) setFirst(0) }, [first, peek.data]) // they were taken meanwhile
  const { mayAct } = useWho()
  const { ask } = useActing()
  const all = peek.data?.messages ?? []
  const from = peek.data?.from ?? first
  const read = first + all.length // up to the end of the page: the oldest are taken first
  const take = (): void => ask({
    title: `Take the oldest ${num(read)} of ${name}?`, text: 'They are removed from the port, and no job will handle them. They are the ones that are shown, and those before them: if others came first meanwhile, nothing is removed.', verb: 'Take', danger: true,
    run: async () => { await act('DELETE', `${base}/messages?from=${from - first}&n=${read}`); setFirst(0); again(); return `${num(read)} taken` },
  })
  const close = (): void => ask({
    title: `Close port ${name}?`, text: 'Nothing more can be sent to it. When it is empty, and all other inputs are closed, the job completes. This cannot be undone.', verb: 'Close', danger: true,
    run: async () => { await act('POST', `${base}/close`); return `${name} is closed` },
  })
  return (
    <div className="port-panel">
      {peek.data && all.length === 0 && <p className="faint">Nothing waits here.{dir === 'in' && !closed && <> <code>weir send {called} {name} &apos;MESSAGE&apos;</code> sends something.</>}</p>}
      <Problem text={peek.error} />
      <ol className="messages" start={from + 1}>{all.map((m, i) => <Shown key={from + i} m={m} n={from + i} job={job} dir={dir} port={name} />)}</ol>
      <div className="row">
        {(first > 0 || size > (all.length || pageSize)) && (
          <>
            <button type="button" disabled={first === 0} onClick={() => setFirst(Math.max(0, first - pageSize))}>Earlier</button>
            <span className="faint">{all.length > 0 ? `${num(first + 1)}–${num(read)} of ${num(size)}` : ''}</span>
            <button type="button" disabled={read >= size} onClick={() => setFirst(read)}>Later</button>
          </>
        )}
        {mayAct && all.length > 0 && <button type="button" className="danger" onClick={take}>Take {first ? 'up to these' : `these ${num(all.length)}`}…</button>}
        {mayAct && dir === 'in' && !closed && <button type="button" onClick={close}>Close port…</button>}
      </div>
      {mayAct && dir === 'in' && !closed && <Send base={base} name={name} />}
    </div>
  )
}

const clipped = 4000

/** A message: what it is, who sent it when, and where it came from. A long one is shown in part, and whole when that is asked for. */
function Shown({ m, n, job, dir, port }: { m: Message; n: number; job: string; dir: 'in' | 'out'; port: string }): ReactNode {
  const [whole, setWhole] = useState(false)
  const text = pretty(m.data, whole ? 2_000_000 : clipped)
  const by = m.context?.['by']
  return (
    <li>
      <a className="from" href={originLink(job, dir, port, n)} aria-label={`Where message ${n} came from`}>#{num(n)}</a>
      <div>
        <pre tabIndex={0} aria-label={`Message ${n}`}>{text}</pre>
        <p className="faint row tight">
          <a href={originLink(job, dir, port, n)}>Where it came from</a>
          {typeof by === 'string' && <span>sent by <bdi>{by}</bdi></span>}
          <TraceLink id={traceOf(m.context)} />
          {(whole || text.length > clipped) && <button type="button" className="plain" onClick={() => setWhole(!whole)}>{whole ? 'Show less' : 'Show all of it'}</button>}
        </p>
      </div>
    </li>
  )
}

/** Sends a message by a form made of the JSON Schema of what the port takes, also of what it leads to in a graph, or as JSON. */
function Send({ base, name }: { base: string; name: string }): ReactNode {
  const [value, setValue] = useState<Json | undefined>(undefined)
  const [error, setError] = useState<unknown>(undefined)
  const [busy, setBusy] = useState(false)
  const { tell } = useActing()
  const known = usePoll<{ schema: Schema }>(`${base}/schema`, 600_000)
  if (!known.data && !known.error) return null
  const schema = known.data?.schema ?? true
  const send = async (message: Json): Promise<void> => {
    setBusy(true)
    setError(undefined)
    try {
      await act('POST', `${base}/messages`, { messages: [message] })
      setValue(undefined)
      tell(`Sent to ${name}`)
    } catch (e) { setError(e) } finally { setBusy(false) }
  }
  return (
    <div className="send">
      <SchemaForm schema={schema} value={value} onChange={v => { setValue(v); setError(undefined) }} onSubmit={v => { void send(v) }} error={error} submit="Send" busy={busy} label="Send a message" />
    </div>
  )
}
