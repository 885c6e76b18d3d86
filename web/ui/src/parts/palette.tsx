import { Command } from 'cmdk'
import { useEffect, useState, type ReactNode } from 'react'
import { get } from '../api'
import { go, link, places } from '../route'
import type { JobPage } from '../types'
import { useViews } from '../views/saved'
import { Dialog } from './basics'

const keys: [string, string][] = [
  ['Ctrl K', 'commands, and a job by its ID, alias or path'], ['?', 'this list'], ['/', 'the search field of the view'],
  ['g o, g j, g t, g u, g d', 'Overview, Jobs, Triggers, Queues, Dead letters'], ['g s, g a', 'Start a graph or a job; tokens and audit, for admins'], ['Escape', 'close what is open'],
  ['arrows', 'in a tree: go along the wires; in a list: the row above or below'], ['Enter', 'open the job that is selected; with Shift, in a list, its tree'],
  ['Space, Shift ↓, Ctrl A', 'in a list: select this job, this and the next, all that are loaded'], ['r, t, Delete', 'in a list: retry, terminate, delete what is selected, or all that pass; each asks first'],
  ['Ctrl Enter', 'in a form: send it'],
  ['f, + and −', 'in a tree: all of it, nearer, farther'], ['e, E', 'in a tree: the wires of the box that is selected, one after the other'],
  ['o', 'in a tree: fold or open what is selected'], ['l', 'in a tree: the picture or the list'],
]

/** Where else the palette leads. */
const commands: [string, string][] = [
  ['Start a graph', link('start')], ['Start a job of a type', link('start', '', { as: 'job' })], ['Failed jobs', link('jobs', '', { status: 'failed', all: 'true' })],
  ['Suspended jobs', link('jobs', '', { status: 'suspended', all: 'true' })], ['Running jobs', link('jobs', '', { status: 'running', all: 'true' })], ['Tokens', link('admin')], ['Audit log', link('admin', '', { as: 'audit' })],
]

const typing = (e: KeyboardEvent): boolean => e.target instanceof HTMLElement && e.target.matches('input, textarea, select, [contenteditable]')

/** The palette finds views and jobs; `?` lists the keys. */
export function Palette({ flip }: { flip: () => void }): ReactNode {
  const [open, setOpen] = useState<'' | 'commands' | 'keys'>('')
  const [text, setText] = useState('')
  const views = useViews()
  const [jobs, setJobs] = useState<JobPage['jobs']>([])
  useEffect(() => {
    let after = ''
    const key = (e: KeyboardEvent): void => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
        e.preventDefault()
        setOpen('commands')
        document.querySelector<HTMLElement>('[cmdk-input]')?.focus() // if it is open already
        return
      }
      if (typing(e) || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return
      if (e.key === '?') setOpen('keys')
      if (e.key === '/') {
        const field = document.querySelector<HTMLInputElement>('[data-search]')
        if (field) { e.preventDefault(); field.focus() }
      }
      const place = after === 'g' ? places.find(([, , letter]) => letter === e.key) : undefined
      if (place) go(link(place[0]))
      after = e.key
    }
    const show = (): void => setOpen('commands')
    addEventListener('keydown', key)
    addEventListener('weir-palette', show)
    return () => { removeEventListener('keydown', key); removeEventListener('weir-palette', show) }
  }, [])
  useEffect(() => {
    if (open !== 'commands') return
    const stop = new AbortController()
    const timer = setTimeout(() => {
      const query = text.trim() ? `alias=${encodeURIComponent(text.trim() + '*')}&` : ''
      get<JobPage>(`v1/jobs?${query}limit=8`, stop.signal).then(p => setJobs(p.jobs)).catch(() => setJobs([]))
    }, 150)
    return () => { stop.abort(); clearTimeout(timer) }
  }, [open, text])
  const close = (): void => { setOpen(''); setText('') }
  const run = (to: string): void => { close(); go(to) }
  if (open === 'keys') {
    return (
      <Dialog key="keys" title="Keys" onClose={close}>
        <dl className="keys">{keys.map(([k, what]) => <div key={k}><dt><kbd>{k}</kbd></dt><dd>{what}</dd></div>)}</dl>
        <div className="row end"><button type="button" className="primary" onClick={close}>Close</button></div>
      </Dialog>
    )
  }
  if (open !== 'commands') return null
  return (
    <Dialog key="commands" title="Commands" onClose={close}>
      <Command label="Commands" shouldFilter loop>
        <Command.Input data-focus="" value={text} onValueChange={setText} placeholder="A view, an alias, an ID, a path…" />
        <Command.List>
          <Command.Empty>Nothing is called so.</Command.Empty>
          {places.map(([id, label, letter]) => <Command.Item key={id} value={label} onSelect={() => run(link(id))}>{label} <kbd>g {letter}</kbd></Command.Item>)}
          {commands.map(([label, to]) => <Command.Item key={label} value={label} onSelect={() => run(to)}>{label}</Command.Item>)}
          {views.map(v => <Command.Item key={v.name} value={`view ${v.name}`} onSelect={() => run(`#/jobs?${v.query}`)}>View <bdi>{v.name}</bdi></Command.Item>)}
          <Command.Item value="Light or dark" onSelect={() => { close(); flip() }}>Light or dark</Command.Item>
          <Command.Item value="Keys ?" onSelect={() => setOpen('keys')}>Keys <kbd>?</kbd></Command.Item>
          <Command.Item value="API reference" onSelect={() => { location.href = 'reference' }}>Reference of the API</Command.Item>
          {text.trim() && <Command.Item value={`open ${text}`} onSelect={() => run(link('job', text.trim()))}>Open job <bdi>{text.trim()}</bdi></Command.Item>}
          {jobs.map(j => (
            <Command.Item key={j.id} value={`${j.name ?? ''} ${j.type} ${j.aliases?.join(' ') ?? ''} ${j.id}`} onSelect={() => run(link('job', j.id))}>
              <bdi>{j.aliases?.[0] ?? j.name ?? j.type}</bdi> <span className="faint">{j.status} · {j.id}</span>
            </Command.Item>
          ))}
        </Command.List>
      </Command>
    </Dialog>
  )
}
