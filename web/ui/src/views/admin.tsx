import { useEffect, useState, type ReactNode } from 'react'
import { act, enc, get, said } from '../api'
import { usePoll, useWho } from '../data'
import { useActing } from '../parts/acting'
import { Dialog, Empty, Problem, Time } from '../parts/basics'
import { link, setQuery, type Route } from '../route'
import type { AuditEntry, MadeToken, Token } from '../types'

const roles: [string, string][] = [['read', 'sees all, changes nothing'], ['operate', 'starts, retries, terminates, deletes, sends'], ['work', 'runs jobs, as a worker'], ['admin', 'all, and makes tokens']]

/** Makes a token, and shows it this once. */
function NewToken({ onClose }: { onClose: () => void }): ReactNode {
  const [name, setName] = useState('')
  const [role, setRole] = useState('read')
  const [ttl, setTtl] = useState('90d')
  const [error, setError] = useState('')
  const [made, setMade] = useState<MadeToken | null>(null)
  const [copied, setCopied] = useState(false)
  const { tell } = useActing()
  const make = async (): Promise<void> => {
    setError('')
    try {
      setMade(await act<MadeToken>('POST', 'v1/tokens', { role, ...(name.trim() ? { name: name.trim() } : {}), ...(ttl.trim() ? { ttl: ttl.trim() } : {}) }))
      tell('The token is made')
    } catch (e) { setError(said(e)) }
  }
  if (made) {
    return (
      <Dialog title={`Token of ${made.name}`} onClose={onClose}>
        <p>It is shown this once: what is kept is its digest.</p>
        <pre tabIndex={0} aria-label="The token">{made.token}</pre>
        <div className="row end">
          <button type="button" onClick={() => { void navigator.clipboard?.writeText(made.token).then(() => setCopied(true)) }}>{copied ? 'Copied' : 'Copy'}</button>
          <button type="button" className="primary" onClick={onClose}>I have it</button>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title="Make a token" onClose={onClose}>
      <form onSubmit={e => { e.preventDefault(); void make() }}>
        <label className="block">Who holds it <input data-focus="" value={name} spellCheck={false} placeholder="ci, or ann@example.com" onChange={e => setName(e.target.value)} /></label>
        <fieldset className="roles"><legend>What it may do</legend>
          {roles.map(([r, what]) => <label key={r} className="check"><input type="radio" name="role" checked={role === r} onChange={() => setRole(r)} /> <span><b>{r}</b> <span className="faint">{what}</span></span></label>)}
        </fieldset>
        <label className="block">Valid for <input value={ttl} spellCheck={false} placeholder="12h, 90d; empty: until it is revoked" onChange={e => setTtl(e.target.value)} /></label>
        <Problem text={error} />
        <div className="row end"><button type="button" onClick={onClose}>Cancel</button><button type="submit" className="primary">Make it</button></div>
      </form>
    </Dialog>
  )
}

function Tokens(): ReactNode {
  const list = usePoll<Token[]>('v1/tokens', 5000)
  const [making, setMaking] = useState(false)
  const { me, readOnly } = useWho()
  const { ask, done } = useActing()
  const { again } = list
  useEffect(() => { if (done) again() }, [done, again])
  const revoke = (t: Token): void => ask({
    title: `Revoke the token of ${t.name}?`, text: `Who holds it is refused from now on; other servers may believe it for five seconds more. This cannot be undone.${me?.name === t.name ? ' It may be the one that you use yourself.' : ''}`, verb: 'Revoke', danger: true,
    run: async () => { await act('DELETE', `v1/tokens/${enc(t.id)}`); return `The token of ${t.name} is revoked` },
  })
  return (
    <>
      <div className="row acts">{!readOnly && <button type="button" className="primary" onClick={() => setMaking(true)}>Make a token…</button>}</div>
      <Problem text={list.error} />
      {list.data?.length === 0 && <Empty title="No tokens yet."><p>Without them nobody needs one: they count where <code>weir serve --tokens</code> runs. The first admin comes from <code>weir token create --role admin</code></p></Empty>}
      {(list.data?.length ?? 0) > 0 && (
        <div className="table"><table>
          <thead><tr><th scope="col">Name</th><th scope="col">Role</th><th scope="col">Made</th><th scope="col">Valid until</th><th scope="col">ID</th><th scope="col"><span className="sr">Acts</span></th></tr></thead>
          <tbody>
            {list.data?.map(t => (
              <tr key={t.id}>
                <td><bdi>{t.name}</bdi></td><td><span className="status">{t.role}</span></td><td><Time at={t.created} /></td><td>{t.expires ? <Time at={t.expires} /> : 'it is revoked'}</td><td><code>{t.id}</code></td>
                <td>{!readOnly && <button type="button" className="danger" aria-label={`Revoke the token of ${t.name}…`} onClick={() => revoke(t)}>Revoke…</button>}</td>
              </tr>
            ))}
          </tbody>
        </table></div>
      )}
      {making && <NewToken onClose={() => setMaking(false)} />}
    </>
  )
}

/** The job that an act was done to, if its path says one. */
function Target({ e }: { e: AuditEntry }): ReactNode {
  const [, job] = /^\/v1\/(?:jobs|triggers)\/([^/]+)/.exec(e.path) ?? []
  if (!job) return <code><bdi>{e.on || e.path}</bdi></code>
  let id = job
  try { id = decodeURIComponent(job) } catch { /* it stays as it is */ }
  return <a href={link('job', id)}><bdi>{id}</bdi></a>
}

const page = 100

function Audit({ route }: { route: Route }): ReactNode {
  const principal = route.query.get('by') ?? ''
  const operation = route.query.get('operation') ?? ''
  const q = new URLSearchParams({ limit: String(page), ...(principal ? { principal } : {}), ...(operation ? { operation } : {}) }).toString()
  const list = usePoll<AuditEntry[]>(`v1/audit?${q}`, 3000)
  const [older, setOlder] = useState<{ of: string; rows: AuditEntry[]; over: boolean }>({ of: '', rows: [], over: false })
  const [error, setError] = useState('')
  const more = older.of === q ? older.rows : []
  const rows = [...list.data ?? [], ...more]
  const last = rows.at(-1)?.at
  const show = (): void => {
    get<AuditEntry[]>(`v1/audit?${q}&until=${enc(last ?? '')}`).then(p => setOlder({ of: q, rows: [...more, ...p], over: p.length < page })).catch((e: unknown) => setError(said(e)))
  }
  const field = (label: string, name: string, value: string, hint: string): ReactNode => (
    <label>{label} <input key={value} data-search={name === 'by' ? '' : undefined} defaultValue={value} placeholder={hint} spellCheck={false} onBlur={e => setQuery(route, { [name]: e.target.value.trim() })} onKeyDown={e => { if (e.key === 'Enter') setQuery(route, { [name]: e.currentTarget.value.trim() }) }} /></label>
  )
  return (
    <>
      <form className="filters" role="search" onSubmit={e => e.preventDefault()}>{field('By', 'by', principal, 'name of a token')}{field('Operation', 'operation', operation, 'retry-job')}</form>
      <Problem text={list.error || error} />
      {list.data && rows.length === 0 && <Empty title="Nobody did anything that passes."><p>What changes something over HTTP is kept here, the last 10,000 acts.</p></Empty>}
      {rows.length > 0 && (
        <div className="table"><table>
          <thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">Did</th><th scope="col">To</th><th scope="col">Answer</th><th scope="col">From</th></tr></thead>
          <tbody>
            {rows.map((e, i) => (
              <tr key={`${e.at} ${i}`}>
                <td><Time at={e.at} /></td><td><bdi>{e.principal}</bdi> <span className="faint">{e.role}</span></td><td><code>{e.operation}</code></td><td><Target e={e} /></td>
                <td className={e.status >= 400 ? 'error' : 'faint'}>{e.status}</td><td className="faint"><bdi>{e.from}</bdi></td>
              </tr>
            ))}
          </tbody>
        </table></div>
      )}
      {rows.length >= page && !(older.of === q && older.over) && <div className="row acts"><button type="button" onClick={show}>Show older ones</button></div>}
    </>
  )
}

/** Tokens and the audit log, for admins. */
export default function AdminView({ route }: { route: Route }): ReactNode {
  const { me } = useWho()
  const audit = route.query.get('as') === 'audit'
  return (
    <div className="view">
      <div className="head"><h1>{audit ? 'Audit' : 'Tokens'}</h1>
        <div className="tabs" role="group" aria-label="What to see">
          <a href={link('admin')} aria-current={audit ? undefined : 'page'}>Tokens</a><a href={link('admin', '', { as: 'audit' })} aria-current={audit ? 'page' : undefined}>Audit</a>
        </div>
      </div>
      {me && me.role !== 'admin' ? <Empty title="This is for admins."><p>Yours is the role <code>{me.role}</code>: <code>weir token create --role admin</code> makes another token.</p></Empty> : audit ? <Audit route={route} /> : <Tokens />}
    </div>
  )
}
