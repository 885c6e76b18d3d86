import { useEffect, useId, useRef, useState, type ReactNode } from 'react'
import { ago, due, limitOf, num } from '../format'
import { link } from '../route'

const symbols: Record<string, string> = {
  running: '●', queued: '◷', scheduled: '◔', waiting: '◷', suspended: 'ǁ', completed: '✔', failed: '✖', terminating: '◌', terminated: '○',
}

/** What a job does. One that is suspended without a reason merely sleeps until something comes, and is no cause for care. */
export function Status({ of, title, idle }: { of: string; title?: string; idle?: boolean }): ReactNode {
  return <span className={`status ${idle ? '' : `s-${of}`}`} title={title}><span aria-hidden="true">{symbols[of] ?? '·'}</span> {of}</span>
}

/** Beside the status of a job that is ready and waits for a limit: nothing of others. */
export function Limited({ status, reason }: { status: string; reason: string | null }): ReactNode {
  const limit = limitOf(status, reason)
  return limit ? <a className="status s-suspended limited" href={link('queues')} title={`It waits for limit ${limit}: see who has its places`}>limited</a> : null
}

/** How long ago a time was, or in how long it comes; of one at which something is to happen, which is `ahead`, no longer than until then. */
export function Time({ at, ahead }: { at: string | null | undefined; ahead?: boolean }): ReactNode {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick(n => n + 1), 5000)
    return () => clearInterval(timer)
  }, [])
  if (!at) return <span className="faint">–</span>
  return <time dateTime={at} title={new Date(at).toISOString()}>{ahead ? due(at) : ago(at)}</time>
}

/** A link to a job by its name; who points at it sees the ID. */
export function JobLink({ id, name, tree }: { id: string; name?: string | null; tree?: boolean }): ReactNode {
  return <a href={link(tree ? 'tree' : 'job', id)} title={name && name !== id ? id : undefined}><bdi>{name || id}</bdi></a>
}

/** A number of dead letters in words; of very many jobs it is counted for some. */
export const deadWords = (n: number, more = false): string => `${num(n)}${more ? ' or more' : ''} dead ${n === 1 && !more ? 'letter' : 'letters'}`

/** How many dead letters a job has, and the way to them; nothing if there are none. */
export function DeadMark({ job, n }: { job: string; n: number | undefined }): ReactNode {
  if (!n) return null
  const words = deadWords(n)
  return <a className="dead-mark nodrag" href={link('dead', '', { job })} aria-label={words} title={`${words}: messages that the job could not handle. Look at them, requeue or discard them`} onClick={e => e.stopPropagation()}>† {num(n)}</a>
}

/** A line through the last values. */
export function Sparkline({ values, label }: { values: number[]; label: string }): ReactNode {
  const w = 160
  const h = 36
  const top = Math.max(1, ...values)
  const step = w / Math.max(1, values.length - 1)
  const d = values.map((v, i) => `${i ? 'L' : 'M'}${(i * step).toFixed(1)} ${(h - 3 - (v / top) * (h - 6)).toFixed(1)}`).join('')
  return (
    <svg className="spark" viewBox={`0 0 ${w} ${h}`} role="img" aria-label={`${label}: the last ${values.length} readings, at most ${top}`} preserveAspectRatio="none">
      {values.length > 1 && <path className="area" d={`${d}L${w} ${h}L0 ${h}z`} />}
      <path d={d} />
    </svg>
  )
}

export function Empty({ title, children }: { title: string; children?: ReactNode }): ReactNode {
  return <div className="empty"><p className="empty-title">{title}</p>{children}</div>
}

/** A modal dialog of the browser: it keeps the focus, ends with Escape, and gives the focus back. What has data-focus gets it first. */
export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ReactNode; wide?: boolean }): ReactNode {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    ref.current?.showModal()
    ref.current?.querySelector<HTMLElement>('[data-focus]')?.focus() // autoFocus comes before the dialog is open, when nothing in it can have the focus
    return () => { (before instanceof HTMLElement && before.isConnected ? before : document.getElementById('main'))?.focus() }
  }, [])
  return (
    <dialog ref={ref} aria-labelledby={id} className={wide ? 'wide' : ''} onClose={onClose}
      onClick={e => { if (e.target === ref.current) onClose() }}>
      <div className="dialog">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

/** What an act did, and what takes it back, if anything does. */
export interface Outcome { said: string; undo?: () => unknown }
export interface Asking { title: string; text: ReactNode; verb: string; danger?: boolean; run: () => Promise<Outcome | string | void> }

/** Asks before something is done, names what happens, and tells in the API's words what went wrong. */
export function Confirm({ ask, onClose, onDone }: { ask: Asking; onClose: () => void; onDone: (o: Outcome) => void }): ReactNode {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const run = async (): Promise<void> => {
    setBusy(true)
    setError('')
    try {
      const said = await ask.run()
      onClose()
      onDone(typeof said === 'object' ? said : { said: said || `${ask.verb}: done` })
    } catch (e) {
      setError(e instanceof Error ? e.message : String(e))
      setBusy(false)
    }
  }
  return (
    <Dialog title={ask.title} onClose={onClose}>
      <div className="dialog-text">{ask.text}</div>
      {error && <p className="error" role="alert">{error}</p>}
      <div className="row end">
        <button type="button" onClick={onClose}>Cancel</button>
        <button type="button" className={ask.danger ? 'danger' : 'primary'} disabled={busy} onClick={() => { void run() }}>{busy ? 'Working…' : ask.verb}</button>
      </div>
    </Dialog>
  )
}

export function Problem({ text }: { text: string }): ReactNode {
  return text ? <p className="error" role="alert">{text}</p> : null
}
