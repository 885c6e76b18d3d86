import { useState, type ReactNode } from 'react'
import { act, enc } from '../api'
import { usePoll, useWho } from '../data'
import { num, pretty } from '../format'
import { useActing } from '../parts/acting'
import { Problem } from '../parts/basics'
import type { Json, Messages } from '../types'

const pageSize = 20

/** What waits in a port, and what can be done there. */
export function PortPanel({ job, dir, name, closed, size }: { job: string; dir: 'in' | 'out'; name: string; closed: boolean; size: number }): ReactNode {
  const base = `v1/jobs/${enc(job)}/ports/${dir}/${enc(name)}`
  const [limit, setLimit] = useState(pageSize)
  const peek = usePoll<Messages>(`${base}/messages?limit=${limit}`, 2000)
  const { mayAct } = useWho()
  const { ask } = useActing()
  const all = peek.data?.messages ?? []
  const take = (): void => ask({
    title: `Take ${num(all.length)} messages of ${name}?`, text: 'They are removed from the port, and no job will handle them. They are the ones that are shown: if others came first meanwhile, nothing is removed.', verb: 'Take', danger: true,
    run: async () => { await act('DELETE', `${base}/messages?from=${peek.data?.from ?? 0}&n=${all.length}`); return `${num(all.length)} taken` },
  })
  const close = (): void => ask({
    title: `Close port ${name}?`, text: 'Nothing more can be sent to it. When it is empty, and all other inputs are closed, the job completes. This cannot be undone.', verb: 'Close', danger: true,
    run: async () => { await act('POST', `${base}/close`); return `${name} is closed` },
  })
  return (
    <div className="port-panel">
      {all.length === 0 && peek.data && <p className="faint">Nothing waits here.</p>}
      <Problem text={peek.error} />
      <ol className="messages" start={(peek.data?.from ?? 0) + 1}>
        {all.map((m, i) => <li key={(peek.data?.from ?? 0) + i}><span className="faint">#{num((peek.data?.from ?? 0) + i)}</span><pre tabIndex={0} aria-label={`Message ${(peek.data?.from ?? 0) + i}`}>{pretty(m.data, 4000)}</pre></li>)}
      </ol>
      <div className="row">
        {size > all.length && limit < 1000 && <button type="button" onClick={() => setLimit(n => Math.min(1000, n * 3))}>Show more</button>}
        {mayAct && all.length > 0 && <button type="button" className="danger" onClick={take}>Take these {num(all.length)}…</button>}
        {mayAct && dir === 'in' && !closed && <button type="button" onClick={close}>Close port…</button>}
      </div>
      {mayAct && dir === 'in' && !closed && <Send base={base} name={name} />}
    </div>
  )
}

function Send({ base, name }: { base: string; name: string }): ReactNode {
  const [text, setText] = useState('')
  const [error, setError] = useState('')
  const { tell } = useActing()
  const send = async (): Promise<void> => {
    let value: Json
    try { value = JSON.parse(text) as Json } catch (e) { setError(`This is not JSON: ${e instanceof Error ? e.message : ''}. A text needs quotes around it.`); return }
    setError('')
    try {
      await act('POST', `${base}/messages`, { messages: [value] })
      setText('')
      tell(`Sent to ${name}`)
    } catch (e) { setError(e instanceof Error ? e.message : String(e)) }
  }
  return (
    <form className="send" onSubmit={e => { e.preventDefault(); void send() }}>
      <label className="block">Send a message, as JSON
        <textarea rows={3} spellCheck={false} value={text} placeholder='{"order": 7}' onChange={e => setText(e.target.value)}
          onKeyDown={e => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); void send() } }} />
      </label>
      <Problem text={error} />
      <button type="submit" className="primary" disabled={!text.trim()}>Send</button>
    </form>
  )
}
