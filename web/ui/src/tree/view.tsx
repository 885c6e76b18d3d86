import { useCallback, useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from 'react'
import { num } from '../format'
import { usePoll } from '../data'
import { Empty, Problem } from '../parts/basics'
import { link, setQuery, type Route } from '../route'
import type { Origin } from '../types'
import { originPath, parseOrigin } from '../views/origin'
import './tree.css'
import { TreeList } from './list'
import { LiveTree } from './live'
import { wiresOf } from './path'
import { Picture } from './picture'

const noPath: number[] = []

/** The wires that a message came by, if the place asks for one: `JOB dir.port.number`. */
function usePath(tree: LiveTree, shape: number, asked: string): { path: number[]; words: string } {
  const [job = '', text = ''] = asked.split(' ')
  const which = useMemo(() => parseOrigin(text), [text])
  const origin = usePoll<Origin>(job && which ? originPath(job, which) : null, 3_600_000)
  return useMemo(() => {
    const p = tree.picture
    if (!p || !origin.data || !which) return { path: noPath, words: origin.error }
    const n = origin.data.entries.length
    return { path: wiresOf(p, origin.data.entries, job), words: `#${num(which.n)} of ${which.port} came by ${num(n)} ${n === 1 ? 'run or act' : 'runs and acts'}` }
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [tree, shape, origin.data, origin.error, which, job])
}

function folds(route: Route): string[] {
  try {
    const v: unknown = JSON.parse(route.query.get('fold') ?? '[]')
    return Array.isArray(v) ? v.filter(x => typeof x === 'string') : []
  } catch { return [] }
}

export default function TreeView({ route }: { route: Route }): ReactNode {
  const foldText = route.query.get('fold') ?? '[]'
  const tree = useMemo(() => new LiveTree(route.id, folds(route)), [route.id]) // eslint-disable-line react-hooks/exhaustive-deps
  useEffect(() => tree.fold(folds(route)), [tree, foldText]) // eslint-disable-line react-hooks/exhaustive-deps
  useEffect(() => tree.start(), [tree])
  const shape = useSyncExternalStore(tree.subscribe, () => tree.shape)
  const trouble = useSyncExternalStore(tree.subscribe, () => tree.trouble)
  const gone = useSyncExternalStore(tree.subscribe, () => tree.gone)
  const [search, setSearch] = useState('')
  const list = route.query.get('as') === 'list'
  const follow = route.query.get('follow') === '1'
  const toggle = useCallback((id: string) => {
    const now = folds(route)
    setQuery(route, { fold: JSON.stringify(now.includes(id) ? now.filter(x => x !== id) : [...now, id]) })
  }, [route])
  const p = tree.picture
  const asked = route.query.get('origin') ?? ''
  const { path, words } = usePath(tree, shape, asked)
  const asList = useCallback(() => setQuery(route, { as: list ? '' : 'list' }), [route, list])
  useEffect(() => {
    const key = (e: KeyboardEvent): void => {
      if (e.key === 'l' && !e.ctrlKey && !e.metaKey && !(e.target instanceof HTMLElement && e.target.matches('input, textarea, select')) && !document.querySelector('dialog[open]')) asList()
    }
    addEventListener('keydown', key)
    return () => removeEventListener('keydown', key)
  }, [asList])
  return (
    <div className="view full tree">
      <div className="head">
        <h1><a href={link('job', route.id)}><bdi>{p?.title ?? 'Tree'}</bdi></a></h1>
        <span className="faint">{p ? `${num(p.jobs)} ${p.jobs === 1 ? 'job' : 'jobs'}` : ''}</span>
        <span className="grow" />
        <input data-search="" type="search" aria-label="Search in the tree" placeholder="Search" value={search} onChange={e => setSearch(e.target.value)} />
        <label className="check"><input type="checkbox" checked={follow} onChange={e => setQuery(route, { follow: e.target.checked ? '1' : '' })} /> follow</label>
        <a className="button" href={link('timeline', route.id)}>Timeline</a>
        {foldText !== '[]' && <button type="button" onClick={() => setQuery(route, { fold: '' })}>Reset folds</button>}
        <button type="button" aria-pressed={list} onClick={asList}>{list ? 'Picture' : 'List'}</button>
      </div>
      {asked && words && <p className="path-words" role="status"><a href={link('job', asked.split(' ')[0] ?? '', { origin: asked.split(' ')[1] ?? '' })}><bdi>{words}</bdi></a> <button type="button" onClick={() => setQuery(route, { origin: '' })}>Hide the path</button></p>}
      <Problem text={trouble} />
      {gone && <Empty title="There is no such tree (any more)."><p><a href={link('jobs')}>All jobs</a></p></Empty>}
      {!p && !gone && <p className="faint pad">Drawing…</p>}
      {p && !gone && (list ? <TreeList tree={tree} shape={shape} search={search} toggle={toggle} /> : <Picture tree={tree} shape={shape} search={search} toggle={toggle} follow={follow} path={path} />)}
    </div>
  )
}
