import { Component, lazy, Suspense, useEffect, useMemo, useState, type ReactNode } from 'react'
import { get, getToken, setToken } from './api'
import { useReach, WhoContext } from './data'
import { ActingProvider } from './parts/acting'
import { Empty } from './parts/basics'
import { Palette } from './parts/palette'
import { link, places, useRoute, type Route } from './route'
import type { Me } from './types'
import { DeadView } from './views/dead'
import { JobView } from './views/job'
import { JobsView } from './views/jobs'
import { Overview } from './views/overview'
import { QueuesView } from './views/queues'
import { TimelineView } from './views/timeline'
import { TriggersView } from './views/triggers'

const TreeView = lazy(() => import('./tree/view'))
const AdminView = lazy(() => import('./views/admin'))
const PatchView = lazy(() => import('./views/patch'))
const StartView = lazy(() => import('./views/start'))

function View({ route }: { route: Route }): ReactNode {
  switch (route.view) {
    case 'jobs': return <JobsView route={route} />
    case 'job': return <JobView key={route.id} route={route} />
    case 'timeline': return <TimelineView key={route.id} route={route} />
    case 'tree': return <TreeView key={route.id} route={route} />
    case 'triggers': return <TriggersView />
    case 'queues': return <QueuesView />
    case 'dead': return <DeadView route={route} />
    case 'patch': return <PatchView key={route.id} id={route.id} />
    case 'admin': return <AdminView route={route} />
    case 'start': return <StartView route={route} />
    case 'overview': return <Overview />
    default: return <Empty title={`There is no page ${route.view} here.`}><p><a href={link('overview')}>Overview</a></p></Empty>
  }
}

/** Shows what went wrong in a view in place of it, and nothing blank. */
class Guard extends Component<{ children: ReactNode; at: string }, { error: string; at: string }> {
  override state = { error: '', at: this.props.at }
  static getDerivedStateFromError(e: unknown): { error: string } { return { error: e instanceof Error ? e.message : String(e) } }
  static getDerivedStateFromProps(p: { at: string }, s: { at: string }): { error: string; at: string } | null {
    return p.at === s.at ? null : { error: '', at: p.at }
  }
  override render(): ReactNode {
    if (!this.state.error) return this.props.children
    return <div className="empty" role="alert"><p className="empty-title">This view failed: {this.state.error}</p><button type="button" onClick={() => location.reload()}>Load the page again</button></div>
  }
}

function useTheme(): [string, () => void] {
  const [theme, setTheme] = useState(localStorage.getItem('weir-theme') ?? '')
  useEffect(() => {
    if (theme) document.documentElement.dataset['theme'] = theme
    else delete document.documentElement.dataset['theme']
  }, [theme])
  const flip = (): void => {
    const dark = theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
    const next = dark ? 'light' : 'dark'
    localStorage.setItem('weir-theme', next)
    setTheme(next)
  }
  return [theme, flip]
}

function TokenForm({ detail, onSet }: { detail: string; onSet: () => void }): ReactNode {
  const [text, setText] = useState('')
  return (
    <form className="token" onSubmit={e => { e.preventDefault(); setToken(text.trim()); onSet() }}>
      <h1>A token, please</h1>
      <p>{getToken() ? detail : 'This server demands a token with each request.'} <code>weir token create --role read</code> makes one.</p>
      <label>Token <input type="password" autoComplete="off" autoFocus value={text} onChange={e => setText(e.target.value)} /></label>
      <button type="submit" className="primary" disabled={!text.trim()}>Use it</button>
      <p className="faint">It is kept in this tab alone, until that is closed, and sent in a header, never in a URL.</p>
    </form>
  )
}

export function App(): ReactNode {
  const route = useRoute()
  const reach = useReach()
  const [me, setMe] = useState<Me | null>(null)
  const [settings, setSettings] = useState({ readOnly: false, traceURL: '' })
  const [turn, setTurn] = useState(0)
  const [, flip] = useTheme()
  useEffect(() => {
    let over = false
    const ask = async (): Promise<void> => {
      try {
        const page = await get<{ read_only: boolean; trace_url?: string }>('page.json')
        const who = await get<Me>('v1/me')
        if (!over) { setSettings({ readOnly: page.read_only, traceURL: page.trace_url ?? '' }); setMe(who) }
      } catch {
        if (!over) setTimeout(() => { void ask() }, 1500)
      }
    }
    void ask()
    return () => { over = true }
  }, [turn])
  const who = useMemo(() => ({ me, ...settings, mayAct: !settings.readOnly && me !== null && (me.role === 'operate' || me.role === 'admin') }), [me, settings])
  const at = ['job', 'tree', 'timeline', 'patch'].includes(route.view) ? 'jobs' : route.view
  const shown = places.filter(([id]) => id === 'start' ? who.mayAct : id !== 'admin' || me?.role === 'admin')
  const title = places.find(([id]) => id === at)?.[1] ?? 'Overview'
  useEffect(() => { document.title = `${title} · Weir` }, [title])
  return (
    <WhoContext.Provider value={who}>
      <ActingProvider>
        <a className="skip" href="#main" onClick={e => { e.preventDefault(); document.getElementById('main')?.focus() }}>Skip to the content</a>
        <header className="top">
          <a className="brand" href={link('overview')}><img src="./icon.svg" alt="" width="24" height="24" /> Weir</a>
          <nav aria-label="Views">
            {shown.map(([id, label]) => <a key={id} href={link(id)} aria-current={at === id ? 'page' : undefined}>{label}</a>)}
          </nav>
          <span className="who">{me && <>{me.tenant}{who.mayAct ? '' : ' · read only'}</>}</span>
          <button type="button" className="icon" aria-label="Light or dark" title="Light or dark" onClick={flip}>◐</button>
          <button type="button" className="icon" aria-label="Commands and keys" title="Commands (Ctrl K), keys (?)" onClick={() => dispatchEvent(new CustomEvent('weir-palette'))}>⌘</button>
        </header>
        {!reach.ok && <div className="banner" role="alert">{reach.detail} Trying again… What you see may be old.</div>}
        <main id="main" tabIndex={-1}>
          {reach.needsToken
            ? <TokenForm detail={reach.detail} onSet={() => setTurn(n => n + 1)} />
            : <Guard at={location.hash}><Suspense fallback={<p className="faint pad">Loading…</p>}><View route={route} /></Suspense></Guard>}
        </main>
        <Palette flip={flip} />
      </ActingProvider>
    </WhoContext.Provider>
  )
}
