// What forms need to know of a JSON Schema, and of errors about a value that one describes.
import { ApiError } from '../api'
import type { Json } from '../types'

export type Schema = boolean | { [key: string]: Json }
type Node = { [key: string]: Json }

const isNode = (v: Json | undefined): v is Node => typeof v === 'object' && v !== null && !Array.isArray(v)

/** Follows references within a schema; what leads nowhere is a schema of anything. */
export function resolve(root: Schema, at: Json | undefined, depth = 0): Node {
  if (!isNode(at)) return {}
  const ref = at['$ref']
  if (typeof ref !== 'string' || depth > 20) return at
  let to: Json | undefined = typeof root === 'boolean' ? {} : root
  for (const step of ref.replace(/^#\/?/, '').split('/').filter(Boolean)) {
    to = isNode(to) ? to[step.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined
  }
  return resolve(root, to, depth + 1)
}

/** Whether a schema says too little of a value for a form: then it is typed as JSON. */
export function isAny(root: Schema, at: Json | undefined): boolean {
  const s = resolve(root, at)
  if (['properties', 'enum', 'const', 'oneOf', 'anyOf', 'allOf'].some(k => k in s)) return false
  const types = [s['type']].flat().filter(t => t !== 'null')
  if (types.length !== 1 || typeof types[0] !== 'string') return true
  if (types[0] === 'object') return !isNode(s['additionalProperties'])
  return types[0] === 'array' && (!('items' in s) || Array.isArray(s['items']))
}

export interface FieldError { path: string[]; text: string }

const steps = (pointer: string): string[] => pointer.split('/').slice(1).map(s => s.replaceAll('~1', '/').replaceAll('~0', '~'))

const frames = ['body', 'params', 'args', 'messages']

/** The field that an error of the API names: "1:1 params.rate", "body.args.rate", "/rate/0"; none if it is about something else. */
function pathOf(where: string): string[] {
  const at = where.replace(/^\d+:\d+ */, '')
  if (at.startsWith('/')) return steps(at)
  const path = at.split(/[.[\]]+/).filter(Boolean)
  let skip = 0
  while (frames.includes(path[skip] ?? '')) skip++
  return skip ? path.slice(skip) : []
}

/** A place in the words of people: "line 7, nodes.t.args". */
const placeOf = (where: string): string => where.replace(/^(\d+):\d+ *(.*)$/, (_, line: string, at: string) => `line ${line}${at ? `, ${at}` : ''}`)

/** What an answer of the API says is wrong, by the fields of the value that was sent; an empty path means all of it. */
export function fieldErrors(e: unknown): FieldError[] {
  if (!(e instanceof Error)) return e ? [{ path: [], text: String(e) }] : []
  if (e instanceof ApiError && e.errors.length > 0) {
    return e.errors.map(d => {
      const path = pathOf(d.where ?? '')
      return { path, text: d.where && path.length === 0 ? `${placeOf(d.where)}: ${d.message}` : d.message }
    })
  }
  // Arguments of jobs: "…wrong arguments: argument rate is "x", use a whole number; /size/0 is …"
  const [, list] = e.message.split(/wrong arguments: /, 2)
  const all = (list ?? '').split('; ').flatMap((text): FieldError[] => {
    const named = /^argument (\S+) (.*)$/s.exec(text)
    if (named?.[1] && named[2]) return [{ path: [named[1]], text: named[2] }]
    const [, pointer] = /^(\/[^\s:]*):? /.exec(text) ?? []
    return pointer ? [{ path: steps(pointer), text: text.slice(pointer.length).replace(/^[: ]+/, '') }] : []
  })
  return all.length > 0 ? all : [{ path: [], text: e.message }]
}
