import { Command } from 'cmdk'
import { useEffect, useState, type ReactNode } from 'react'
import { get } from '../api'
import { go, link, places } from '../route'
import type { JobPage } from '../types'
import { Dialog } from './basics'

const keys: [string, string][] = [
  ['Ctrl K', 'commands, and a job by its ID, alias or path'], ['?', 'this list'], ['/', 'the search field of the view'],
  ['g o, g j, g t, g u, g d', 'Overview, Jobs, Triggers, Queues, Dead letters'], ['Escape', 'close what is open'],
  ['arrows', 'in a tree: go along the wires; in a list: the row above or below'], ['Enter', 'open the job that is selected'],
  ['f, + and −', 'in a tree: all of it, nearer, farther'], ['l', 'in a tree: the picture or the list'],
]

const typing = (e: KeyboardEvent): boolean => e.target instanceof HTMLElement && e.target.matches('input, textarea, select, [contenteditable]')

/** The palette finds views and jobs; `?` lists the keys. */
export function Palette({ flip }: { flip: () => void }): ReactNode {
  const [open, setOpen] = useState<'' | 'commands' | 'keys'>('')
  const [text, setText] = useState('')
  const [jobs, setJobs] = useState<JobPage['jobs']>([])
  useEffect(() => {
    let after = ''
    const key = (e: KeyboardEvent): void => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
        e.preventDefault()
        setOpen('commands')
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
      <Dialog title="Keys" onClose={close}>
        <dl className="keys">{keys.map(([k, what]) => <div key={k}><dt><kbd>{k}</kbd></dt><dd>{what}</dd></div>)}</dl>
        <div className="row end"><button type="button" className="primary" onClick={close}>Close</button></div>
      </Dialog>
    )
  }
  if (open !== 'commands') return null
  return (
    <Dialog title="Commands" onClose={close}>
      <Command label="Commands" shouldFilter loop>
        <Command.Input autoFocus value={text} onValueChange={setText} placeholder="A view, an alias, an ID, a path…" />
        <Command.List>
          <Command.Empty>Nothing is called so.</Command.Empty>
          {places.map(([id, label, letter]) => <Command.Item key={id} value={label} onSelect={() => run(link(id))}>{label} <kbd>g {letter}</kbd></Command.Item>)}
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
