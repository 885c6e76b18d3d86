import { Validator, type OutputUnit } from '@cfworker/json-schema'
import withTheme, { type ThemeProps } from '@rjsf/core/lib/withTheme.js' // the index would draw in a validator that needs eval
import { ErrorSchemaBuilder, type ErrorSchema, type FieldErrorProps, type FieldProps, type IconButtonProps, type RJSFSchema, type RJSFValidationError, type UiSchema, type ValidatorType } from '@rjsf/utils'
import { useId, useMemo, useRef, useState, type ReactNode } from 'react'
import { said } from '../api'
import { pretty } from '../format'
import type { Json } from '../types'
import type { FormProps } from './form'
import { General } from './form'
import { fieldErrors, isAny, resolve, type FieldError, type Schema } from './schema'

/** What a validator found that a field stands for; that a whole does not fit as a part of it does not is no news. */
function errorsOf(units: OutputUnit[]): FieldError[] {
  return units.filter(u => !['properties', 'items', 'prefixItems', '$ref', 'allOf', 'additionalProperties', 'patternProperties'].includes(u.keyword)).map(u => {
    const path = u.instanceLocation.split('/').slice(1).map(s => decodeURIComponent(s).replaceAll('~1', '/').replaceAll('~0', '~'))
    const missing = u.keyword === 'required' ? /property "(.*)"/.exec(u.error)?.[1] : undefined
    return missing === undefined ? { path, text: u.error } : { path: [...path, missing], text: `${missing} is missing: it is required` }
  })
}

function check(schema: Schema, value: unknown): FieldError[] {
  try {
    return errorsOf(new Validator(schema as object, '2020-12', false).validate(value).errors)
  } catch { return [] } // a schema that is wrong itself: the server judges
}

function errorSchema(all: FieldError[]): ErrorSchema {
  const b = new ErrorSchemaBuilder()
  for (const e of all) b.addErrors(e.text, e.path)
  return b.ErrorSchema
}

// The form's own checks spare a question to the server. Ajv would need eval, which the page's policy forbids.
const validator: ValidatorType = {
  isValid: (schema, value, root) => check({ ...schema as object, ...(root?.$defs ? { $defs: root.$defs as unknown as Json } : {}) } as Schema, value).length === 0,
  rawValidation: (schema, value) => ({ errors: check(schema as Schema, value) as never[] }),
  validateFormData: (value, schema) => {
    const all = check(schema as Schema, value)
    const errors: RJSFValidationError[] = all.map(e => ({ property: `.${e.path.join('.')}`, message: e.text, stack: `${e.path.join('.')}: ${e.text}` }))
    return { errors, errorSchema: errorSchema(all) }
  },
}

/** A value that the schema tells too little of. */
function JsonField({ name, formData, onChange, fieldPathId, required, schema, rawErrors }: FieldProps): ReactNode {
  const [text, setText] = useState(() => formData === undefined ? '' : pretty(formData))
  const [wrong, setWrong] = useState('')
  const id = useId()
  const edit = (t: string): void => {
    setText(t)
    setWrong('')
    if (!t.trim()) { onChange(undefined, fieldPathId.path); return }
    try { onChange(JSON.parse(t) as Json, fieldPathId.path) } catch (e) { setWrong(`This is not JSON: ${said(e)}`) }
  }
  return (
    <>
      <label htmlFor={id}>{name}{required && <span className="required">*</span>} <span className="faint">as JSON</span></label>
      {schema.description && <div className="field-description">{schema.description}</div>}
      <textarea id={id} rows={2} spellCheck={false} value={text} required={required === true} onChange={e => edit(e.target.value)} aria-invalid={Boolean(wrong || rawErrors?.length)} />
      {wrong && <p className="error" role="alert">{wrong}</p>}
    </>
  )
}

const icon = (text: string, label: string) => function Icon({ onClick, disabled, id }: IconButtonProps): ReactNode {
  return <button type="button" id={id} className="icon" aria-label={label} title={label} onClick={onClick} disabled={disabled}>{text}</button>
}

function FieldErrors({ errors = [], fieldPathId }: FieldErrorProps): ReactNode {
  if (errors.length === 0) return null
  return <div id={`${fieldPathId.$id}__error`} role="alert"><ul className="field-errors">{errors.map((e, i) => <li key={i} className="error">{e}</li>)}</ul></div>
}

const theme: ThemeProps = {
  fields: { JsonField },
  templates: {
    FieldErrorTemplate: FieldErrors,
    ButtonTemplates: {
      AddButton: ({ onClick, disabled, id }: IconButtonProps) => <button type="button" id={id} onClick={onClick} disabled={disabled}>+ Add</button>,
      RemoveButton: icon('✕', 'Remove'), MoveUpButton: icon('↑', 'Move up'), MoveDownButton: icon('↓', 'Move down'), CopyButton: icon('⧉', 'Copy'),
    },
  },
}
const Themed = withTheme(theme)

const isRequired = (s: { [key: string]: Json }, name: string): boolean => Array.isArray(s['required']) && s['required'].includes(name)

/** Whether a schema, or one in it, has required properties. */
function hasRequired(at: Json | undefined): boolean {
  if (at === null || typeof at !== 'object') return false
  if (!Array.isArray(at) && Array.isArray(at['required']) && at['required'].length > 0) return true
  return Object.values(at).some(hasRequired)
}

/** How the fields of a schema are drawn: those that are typed as JSON, wherever they are, and those that ask yes or no. */
function uiOf(root: Schema, at: Json | undefined, depth = 0): UiSchema {
  if (depth > 0 && isAny(root, at)) return { 'ui:field': 'JsonField' }
  if (depth > 6) return {}
  const s = resolve(root, at)
  const ui: UiSchema = {}
  const properties = s['properties']
  if (properties && typeof properties === 'object' && !Array.isArray(properties)) {
    for (const [name, p] of Object.entries(properties)) {
      ui[name] = uiOf(root, p, depth + 1)
      if (isRequired(s, name) && resolve(root, p)['type'] === 'boolean') ui[name] = { ...ui[name], 'ui:widget': 'radio' } // a box that nobody has touched says neither yes nor no
    }
  }
  if (s['items'] !== undefined) ui['items'] = uiOf(root, s['items'], depth + 1)
  const more = s['additionalProperties']
  if (more && typeof more === 'object') ui['additionalProperties'] = uiOf(root, more, depth + 1)
  return ui
}

/** Schemas of properties that say nothing, {} and true, which rjsf does not draw, as ones that do not say more. */
const saysNothing = (p: Json): boolean => p === true || p !== null && typeof p === 'object' && Object.keys(p).length === 0

function plain(at: Json): Json {
  if (Array.isArray(at)) return at.map(plain)
  if (at === null || typeof at !== 'object') return at
  return Object.fromEntries(Object.entries(at).map(([k, v]) => [k, k === 'properties' && v && typeof v === 'object' && !Array.isArray(v)
    ? Object.fromEntries(Object.entries(v).map(([n, p]) => [n, saysNothing(p) ? { $comment: 'anything' } : plain(p)])) : k === 'default' || k === 'enum' || k === 'const' || k === 'examples' ? v : plain(v)]))
}

/** The fields of a form; parts/form.tsx loads it when one is opened. */
export default function Fields({ schema, value, onChange, onSubmit, error, submit, busy, children }: FormProps): ReactNode {
  const id = useId().replaceAll(/\W/g, '')
  const box = useRef<HTMLDivElement>(null)
  const drawn = useMemo(() => { const { $schema: _, ...rest } = plain(schema as Json) as { [key: string]: Json }; return rest as RJSFSchema }, [schema])
  const ui = useMemo((): UiSchema => ({ ...uiOf(schema, schema as Json), 'ui:submitButtonOptions': { norender: true } }), [schema])
  const [rest, extra] = useMemo(() => {
    const all = fieldErrors(error)
    const known = (e: FieldError): boolean => {
      let at: Json | undefined = schema as Json
      for (const step of e.path) {
        const s = resolve(schema, at)
        const props = s['properties']
        at = props && typeof props === 'object' && !Array.isArray(props) ? props[step] : s['items']
        if (at === undefined) return false
      }
      return e.path.length > 0
    }
    return [all.filter(e => !known(e)), errorSchema(all.filter(known))] as const
  }, [error, schema])
  return (
    <div ref={box} className="fields" onKeyDown={e => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); box.current?.querySelector('form')?.requestSubmit() } }}>
      <Themed schema={drawn} uiSchema={ui} formData={value} validator={validator} idPrefix={`f${id}`} noHtml5Validate showErrorList={false} focusOnFirstError
        extraErrors={extra} experimental_defaultFormStateBehavior={{ emptyObjectFields: 'skipEmptyDefaults', requiredBooleanDefault: 'skip' }}
        onChange={e => onChange(e.formData as Json | undefined)} onSubmit={e => onSubmit((e.formData ?? null) as Json)}>
        {hasRequired(schema as Json) && <p className="faint"><span className="required">*</span> required</p>}
        <General error={rest.length ? rest.map(e => (e.path.length ? `${e.path.join('.')}: ${e.text}` : e.text)).join('\n') : undefined} />
        {children}
        <div className="row"><button type="submit" className="primary" disabled={busy}>{busy ? 'Working…' : submit}</button></div>
      </Themed>
    </div>
  )
}
