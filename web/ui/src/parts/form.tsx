import { lazy, Suspense, useEffect, useId, useState, type ReactNode } from 'react'
import { said } from '../api'
import { pretty } from '../format'
import type { Json } from '../types'
import { Problem } from './basics'
import { fieldErrors, isAny, type Schema } from './schema'

// What draws the fields is large, and comes when the first form is opened.
const Fields = lazy(() => import('./fields'))

export interface FormProps {
  /** The JSON Schema of the value, 2020-12. One that says nothing, as {} and true, is a form of JSON alone. */
  schema: Schema
  value: Json | undefined
  onChange: (value: Json | undefined) => void
  /** Is called with a value that fits the schema as far as the browser can tell; the server judges. */
  onSubmit: (value: Json) => void
  /** What the API answered, an ApiError with pointers or anything else: shown at the fields that it names. */
  error?: unknown
  /** What the button says. */
  submit: string
  busy?: boolean
  /** What the JSON is called, for who types it: "Message", "Parameters". */
  label?: string
  placeholder?: string
  children?: ReactNode
}

/** SchemaForm edits a JSON value by fields made of its schema, or as text. Ctrl Enter sends it. */
export function SchemaForm(p: FormProps): ReactNode {
  const free = isAny(p.schema, p.schema)
  const [asJson, setAsJson] = useState(free)
  const text = free || asJson
  return (
    <div className="schema-form">
      {!free && (
        <div className="row end tight" role="group" aria-label="How to edit it">
          <button type="button" aria-pressed={!asJson} onClick={() => setAsJson(false)}>Form</button>
          <button type="button" aria-pressed={asJson} onClick={() => setAsJson(true)}>JSON</button>
        </div>
      )}
      {text ? <JsonText {...p} /> : <Suspense fallback={<p className="faint">Loading the form…</p>}><Fields {...p} /></Suspense>}
    </div>
  )
}

/** Errors that no field stands for. */
export function General({ error }: { error: unknown }): ReactNode {
  const all = fieldErrors(error)
  return <Problem text={all.map(e => (e.path.length ? `${e.path.join('.')}: ${e.text}` : e.text)).join('\n')} />
}

function JsonText({ value, onChange, onSubmit, error, submit, busy, label, placeholder, children }: FormProps): ReactNode {
  const [text, setText] = useState(() => value === undefined ? '' : pretty(value))
  const [wrong, setWrong] = useState('')
  const id = useId()
  useEffect(() => { if (value === undefined) setText('') }, [value])
  const read = (t: string): Json | undefined => {
    try { return JSON.parse(t) as Json } catch (e) { setWrong(`This is not JSON: ${said(e)}. A text needs quotes around it.`); return undefined }
  }
  const edit = (t: string): void => {
    setText(t)
    setWrong('')
    try { onChange(JSON.parse(t) as Json) } catch { /* it is told when it is sent */ }
  }
  const send = (): void => {
    const v = read(text)
    if (v !== undefined) onSubmit(v)
  }
  return (
    <form onSubmit={e => { e.preventDefault(); send() }} onKeyDown={e => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); send() } }}>
      <label className="block" htmlFor={id}>{label ?? 'Value'}, as JSON</label>
      <textarea id={id} rows={Math.min(16, Math.max(3, text.split('\n').length))} spellCheck={false} value={text} placeholder={placeholder ?? '{"order": 7}'} onChange={e => edit(e.target.value)} />
      <Problem text={wrong} />
      {!wrong && <General error={error} />}
      {children}
      <div className="row"><button type="submit" className="primary" disabled={busy || !text.trim()}>{busy ? 'Working…' : submit}</button></div>
    </form>
  )
}
