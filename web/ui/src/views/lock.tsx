import { useState, type ReactNode } from 'react'
import { act, enc, said } from '../api'
import { span } from '../format'
import { useActing } from '../parts/acting'
import { Dialog, Problem, Time } from '../parts/basics'
import type { Job, Lock } from '../types'

/** Tells of a lock of a job: while it has one, it begins no run. */
export function LockNote({ lock }: { lock: Lock | undefined }): ReactNode {
  return lock ? <p className="status s-suspended">⊘ locked{lock.by && <> by <bdi>{lock.by}</bdi></>} until <Time at={lock.until} ahead /></p> : null
}

function Ask({ job, name, onClose }: { job: Job; name: string; onClose: () => void }): ReactNode {
  const [ttl, setTtl] = useState('10m')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const { tell } = useActing()
  const path = `v1/jobs/${enc(job.id)}/lock`
  const lock = async (): Promise<void> => {
    setBusy(true)
    setError('')
    try {
      const l = await act<{ token: string; until: string }>('PUT', path, { ttl })
      onClose()
      tell(`${name} is locked for ${l ? span(Date.parse(l.until) - Date.now() + 500) : ttl}`, () => act('DELETE', `${path}?token=${enc(l?.token ?? '')}`))
    } catch (e) { setError(said(e)); setBusy(false) }
  }
  return (
    <Dialog title={`Lock ${name}?`} onClose={onClose}>
      <form onSubmit={e => { e.preventDefault(); void lock() }}>
        <p>It begins no run while it is locked. A run in progress ends first; what the job gets meanwhile waits.</p>
        <label className="block">For how long <input value={ttl} spellCheck={false} onChange={e => setTtl(e.target.value)} placeholder="10m, 2h" /></label>
        <Problem text={error} />
        <div className="row end"><button type="button" onClick={onClose}>Cancel</button><button type="submit" className="primary" disabled={busy || !ttl.trim()}>Lock</button></div>
      </form>
    </Dialog>
  )
}

/** A button that locks a job, or ends its lock whoever holds it. Graphs have no runs to keep off. */
export function LockAct({ job, name }: { job: Job; name: string }): ReactNode {
  const [open, setOpen] = useState(false)
  const { ask } = useActing()
  if (Object.keys(job.children ?? {}).length > 0 && job.args === undefined && !job.lock || ['completed', 'terminated', 'terminating'].includes(job.status)) return null
  const unlock = (): void => ask({
    title: `Unlock ${name}?`, text: `The lock${job.lock?.by ? ` of ${job.lock.by}` : ''} ends, and the job begins runs again. Who holds it is told when he refreshes or releases it.`, verb: 'Unlock',
    run: async () => { await act('DELETE', `v1/jobs/${enc(job.id)}/lock?force=true`); return `${name} is unlocked` },
  })
  return (
    <>
      {job.lock ? <button type="button" onClick={unlock}>Unlock…</button> : <button type="button" onClick={() => setOpen(true)}>Lock…</button>}
      {open && <Ask job={job} name={name} onClose={() => setOpen(false)} />}
    </>
  )
}
