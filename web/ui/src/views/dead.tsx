import { useEffect, useState, type ReactNode } from 'react'
import { act } from '../api'
import { usePoll, useWho } from '../data'
import { num, pretty } from '../format'
import { useActing } from '../parts/acting'
import { Dialog, Empty, Problem, Time } from '../parts/basics'
import { setQuery, type Route } from '../route'
import type { DeadLetter, DeadLetters, Json } from '../types'
import { JobName, useNames } from './names'

/** Requeues a dead letter with other messages than it holds, at once with its removal. */
function Edit({ letter, onClose, onDone }: { letter: DeadLetter; onClose: () => void; onDone: (said: string) => void }): ReactNode {
  const [texts, setTexts] = useState(() => Object.fromEntries(Object.entries(letter.messages).map(([p, v]) => [p, JSON.stringify(v, null, 2)])))
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const run = async (): Promise<void> => {
    const messages: Record<string, Json> = {}
    for (const [port, text] of Object.entries(texts)) {
      try { messages[port] = JSON.parse(text) as Json } catch (e) { setError(`Port ${port}: ${e instanceof Error ? e.message : ''}`); return }
    }
    setBusy(true)
    try {
      await act('POST', 'v1/dead/requeue', { job: letter.in.job, ...(letter.in.port === 'errors' ? {} : { port: letter.in.port }), letters: [letter.id], messages })
      onClose()
      onDone('The edited messages were sent, and the letter is gone')
    } catch (e) { setError(e instanceof Error ? e.message : String(e)); setBusy(false) }
  }
  return (
    <Dialog title="Edit, then send again" onClose={onClose} wide>
      <p className="faint">What stands here goes to the In ports of <bdi>{letter.job}</bdi>, at once with the removal of the dead letter.</p>
      {Object.entries(texts).map(([p, text]) => <label key={p} className="block">Port <bdi>{p}</bdi><textarea rows={8} spellCheck={false} value={text} onChange={e => setTexts(old => ({ ...old, [p]: e.target.value }))} /></label>)}
      <Problem text={error} />
      <div className="row end"><button type="button" onClick={onClose}>Cancel</button><button type="button" className="primary" disabled={busy} onClick={() => { void run() }}>Send, and remove the letter</button></div>
    </Dialog>
  )
}

export function DeadView({ route }: { route: Route }): ReactNode {
  const job = route.query.get('job') ?? ''
  const error = route.query.get('error') ?? ''
  const q = new URLSearchParams({ limit: '200', ...(job ? { job } : {}), ...(error ? { error } : {}) })
  const list = usePoll<DeadLetters>(`v1/dead?${q}`, 3000)
  const [editing, setEditing] = useState<DeadLetter | null>(null)
  const { mayAct } = useWho()
  const { ask, tell, done } = useActing()
  const { again } = list
  useEffect(() => { if (done) again() }, [done, again])
  const means = (l: DeadLetter): Record<string, unknown> => ({ job: l.in.job, letters: [l.id], ...(l.in.port === 'errors' ? {} : { port: l.in.port }) })
  const act1 = (path: string, body: unknown, did: string) => async (): Promise<string> => {
    const answer = await act<{ done: number; error?: string }>('POST', path, body)
    if (answer?.error && !answer.done) throw new Error(answer.error)
    return `${num(answer?.done ?? 0)} ${did}${answer?.error ? `; others not: ${answer.error}` : ''}`
  }
  const letters = list.data?.letters ?? []
  const named = useNames(letters.map(l => l.job))
  const requeueAll = (): void => ask({
    title: `Requeue ${num(letters.length)}${list.data?.more ? '+' : ''} dead letters?`, text: 'What they hold goes back to the In ports it came from, at once with their removal.', verb: 'Requeue all',
    run: act1('v1/dead/requeue', { ...(job ? { job } : {}), ...(error ? { error } : {}), ...(!job && !error ? { since: '1970-01-01T00:00:00Z' } : {}) }, 'requeued'),
  })
  return (
    <div className="view">
      <div className="head"><h1>Dead letters</h1>{mayAct && letters.length > 0 && <button type="button" onClick={requeueAll}>Requeue all…</button>}</div>
      <form className="filters" role="search" onSubmit={e => e.preventDefault()}>
        <label>Job <input data-search="" defaultValue={job} placeholder="alias, ID or path" onBlur={e => setQuery(route, { job: e.target.value.trim() })} onKeyDown={e => { if (e.key === 'Enter') setQuery(route, { job: e.currentTarget.value.trim() }) }} /></label>
        <label>Error <input defaultValue={error} placeholder="a text in it" onKeyDown={e => { if (e.key === 'Enter') setQuery(route, { error: e.currentTarget.value }) }} onBlur={e => setQuery(route, { error: e.target.value })} /></label>
      </form>
      <Problem text={list.error} />
      {list.data && letters.length === 0 && <Empty title="No dead letters."><p>What a job with the failure policy <code>dead_letter</code> cannot handle comes here.</p></Empty>}
      <div className="cards wide">
        {letters.map(l => (
          <article key={`${l.in.job} ${l.id}`} className="card" aria-label={`Dead letter ${l.id}`}>
            <p className="error"><bdi>{l.error}</bdi></p>
            <p className="faint">of <JobName id={l.job} of={named(l.job)} />, <Time at={l.at} /></p>
            {Object.entries(l.messages).map(([p, v]) => <div key={p}><p>Port <bdi>{p}</bdi></p><pre tabIndex={0} aria-label={`Message of port ${p}`}>{pretty(v, 4000)}</pre></div>)}
            {mayAct && (
              <div className="row acts">
                <button type="button" onClick={() => ask({ title: 'Requeue this dead letter?', text: `What it holds goes back to the In ports of job ${l.job}, and the letter is removed, at once.`, verb: 'Requeue', run: act1('v1/dead/requeue', means(l), 'requeued') })}>Requeue…</button>
                <button type="button" onClick={() => setEditing(l)}>Edit…</button>
                <button type="button" className="danger" onClick={() => ask({ title: 'Discard this dead letter?', text: 'What it holds is removed for good. This cannot be undone.', verb: 'Discard', danger: true, run: act1('v1/dead/discard', means(l), 'discarded') })}>Discard…</button>
              </div>
            )}
          </article>
        ))}
      </div>
      {editing && <Edit letter={editing} onClose={() => setEditing(null)} onDone={tell} />}
    </div>
  )
}
