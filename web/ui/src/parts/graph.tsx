import { useEffect, useId, useRef, useState, type ReactNode } from 'react'
import { act, send } from '../api'
import type { Json } from '../types'
import type { Schema } from './schema'

/** A graph as a text, and the values of its parameters. */
export interface GraphText { graph: string; format: string; params?: { [key: string]: Json } }

const example = `weir: 1
name: hello
params:
  greeting: {type: string, default: Hello, description: what each name is greeted with}
nodes:
  clock: {type: every, args: {every: 1s}}
  greet: {type: map, args: {expr: '"\${greeting}, number " + string(it.n)'}}
edges:
  - clock.out -> greet.in
outputs:
  greetings: greet.out
`

export interface GraphDraft {
  text: string; format: string; params: { [key: string]: Json }
  setText: (text: string, format?: string) => void
  setParams: (params: { [key: string]: Json }) => void
  /** The JSON Schema of the parameters; null while the text is none of a graph. */
  schema: Schema | null
  /** What is wrong with the text. */
  error: unknown
  body: () => GraphText
}

/** Whether a graph has parameters. */
export const hasParams = (schema: Schema | null): boolean => typeof schema === 'object' && schema !== null && Object.keys(schema['properties'] ?? {}).length > 0

/** A graph that is typed, pasted or read from a file; the server tells its parameters as soon as it can be read. */
export function useGraph(): GraphDraft {
  const [text, setText] = useState('')
  const [format, setFormat] = useState('yaml')
  const [params, setParams] = useState<{ [key: string]: Json }>({})
  const [found, setFound] = useState<{ schema: Schema | null; error: unknown }>({ schema: null, error: null })
  useEffect(() => {
    if (!text.trim()) { setFound({ schema: null, error: null }); return }
    let over = false
    const timer = setTimeout(() => {
      act<Schema>('POST', 'v1/graphs/params', { graph: text, format })
        .then(schema => { if (!over) setFound({ schema, error: null }) })
        .catch((error: unknown) => { if (!over) setFound({ schema: null, error }) })
    }, 300)
    return () => { over = true; clearTimeout(timer) }
  }, [text, format])
  return {
    text, format, params, setParams, ...found,
    setText: (t, f) => { setText(t); if (f) setFormat(f) },
    body: () => ({ graph: text, format, ...(hasParams(found.schema) ? { params } : {}) }),
  }
}

/** Where the text of a graph is typed, pasted, dropped or read from a file. */
export function GraphInput({ draft }: { draft: GraphDraft }): ReactNode {
  const id = useId()
  const file = useRef<HTMLInputElement>(null)
  const take = (f: File | undefined): void => {
    const ext = f?.name.split('.').at(-1) ?? ''
    void f?.text().then(t => draft.setText(t, ['json', 'fbp'].includes(ext) ? ext : 'yaml'))
  }
  return (
    <div onDragOver={e => e.preventDefault()} onDrop={e => { e.preventDefault(); take(e.dataTransfer.files[0]) }}>
      <div className="row">
        <label htmlFor={id}>Graph</label><span className="grow" />
        <label className="inline">Format <select value={draft.format} onChange={e => draft.setText(draft.text, e.target.value)}><option value="yaml">YAML</option><option value="json">JSON</option><option value="fbp">FBP</option></select></label>
        <input ref={file} type="file" className="sr" tabIndex={-1} aria-label="File of a graph" accept=".yaml,.yml,.json,.fbp" onChange={e => take(e.target.files?.[0])} />
        <button type="button" onClick={() => file.current?.click()}>Open a file…</button>
        {!draft.text && <button type="button" onClick={() => draft.setText(example, 'yaml')}>Insert an example</button>}
      </div>
      <textarea id={id} data-search="" className="code" rows={16} spellCheck={false} value={draft.text} onChange={e => draft.setText(e.target.value)}
        placeholder={'weir: 1\nname: …\nnodes:\n  …\n\nPaste a graph, or drop its file here. docs/graphs.md describes it; weir init writes a first one.'} />
    </div>
  )
}

/** The picture of a graph, as it would be; nothing while it cannot be drawn. */
export function GraphPicture({ draft }: { draft: GraphDraft }): ReactNode {
  const [source, setSource] = useState('')
  const asked = draft.schema ? JSON.stringify(draft.body()) : ''
  useEffect(() => {
    if (!asked) { setSource(''); return }
    const stop = new AbortController()
    const timer = setTimeout(() => {
      send('POST', 'v1/graphs/draw?format=svg', asked, stop.signal).then(a => a.text())
        .then(svg => setSource(`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`)).catch(() => setSource(''))
    }, 400)
    return () => { stop.abort(); clearTimeout(timer) }
  }, [asked])
  const [whole, setWhole] = useState(true)
  const [wide, setWide] = useState(false) // wider than its place
  const measure = (img: HTMLImageElement): void => setWide(img.naturalWidth > (img.parentElement?.clientWidth ?? 0))
  if (!source) return null
  return (
    <div className="graph-frame">
      <div className="graph-picture" tabIndex={0} role="group" aria-label="Picture of the graph" data-whole={whole}><img src={source} alt="The jobs of the graph and the wires between them" onLoad={e => measure(e.currentTarget)} /></div>
      {wide && <button type="button" onClick={() => setWhole(!whole)}>{whole ? 'Full size' : 'All of it'}</button>}
    </div>
  )
}
