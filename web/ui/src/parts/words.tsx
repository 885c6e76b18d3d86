import type { ReactNode } from 'react'
import { limitOf } from '../format'
import { link } from '../route'
import { JobLink, Time } from './basics'
import { JobName, useNames, type NameOf } from './names'

const id = String.raw`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?:\.[1-9]\d{0,9})?`
const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`
const special = new RegExp(String.raw`\b(?:(?:at )?(${time})|(${id}))`)

/** What may be IDs of jobs in a text. */
export const idsIn = (text: string): string[] => text.match(new RegExp(String.raw`\b${id}`, 'g')) ?? []

/** A text without the IDs in it: what is the same of several jobs. */
export const withoutIds = (text: string): string => text.replace(new RegExp(String.raw`\b${id}`, 'g'), '')

/** What stands before a time at which something is to happen. */
const ahead = /(?:\b(?:which|run|try) is|goes on|is due|ends) $/

/** Names are looked up where `named` does not tell them; in a `raw` text, such as an error, times stay as they are. */
interface Text { text: string; named?: NameOf | undefined; raw?: boolean }

/** A text of the server: times in it are relative, jobs that are there have their names, and both are exact when they are pointed at. */
export function Words({ text, named, raw }: Text): ReactNode {
  const own = useNames(named ? [] : idsIn(text))
  const of = named ?? own
  const parts: ReactNode[] = []
  let rest = text
  for (let m = special.exec(rest); m; m = special.exec(rest)) {
    const before = rest.slice(0, m.index)
    parts.push(before)
    if (m[1] && raw) parts.push(m[0])
    else if (m[1]) parts.push(<Time key={parts.length} at={m[1]} ahead={ahead.test(before)} />)
    else parts.push(of(m[2] ?? '').there ? <JobLink key={parts.length} id={m[2] ?? ''} name={of(m[2] ?? '').text} /> : m[2])
    rest = rest.slice(m.index + m[0].length)
  }
  return <bdi>{parts}{rest}</bdi>
}

/** The port that is full, and its job, of the reason of a job that is blocked. */
const fullPort = (reason: string): string[] => /^full: port (\S+) of job (\S+)$/.exec(reason)?.slice(1) ?? []

/** Why a job is as it is, by its reason: the limit that it waits for, or the port that is full, with a way to it. */
export function Reason({ text, named }: Text): ReactNode {
  const [port, owner] = fullPort(text)
  const own = useNames(owner && !named ? [owner] : [])
  const limit = limitOf('queued', text)
  if (limit) return <>waits for {limit.startsWith('rate:') ? 'its turn in' : 'a place of'} limit <a href={link('queues')}><bdi>{limit}</bdi></a></>
  return port && owner ? <>port <bdi>{port}</bdi> of <JobName id={owner} of={(named ?? own)(owner)} /> is full</> : <Words text={text} named={named} />
}
