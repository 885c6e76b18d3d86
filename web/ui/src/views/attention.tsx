import type { ReactNode } from 'react'
import { isIdle, num, span } from '../format'
import { deadWords, JobLink, Status } from '../parts/basics'
import { Reason, withoutIds, Words } from '../parts/words'
import { link } from '../route'
import type { DeadCount, DeadLetters, Job, JobPage, Queue, Stats } from '../types'
import { JobName, type NameOf } from '../parts/names'

/** Something that needs somebody: what it is, why, and where one click leads. */
export interface Cause { key: string; kind: string; what: ReactNode; why: ReactNode; to: string; verb: string }

export interface Found { stats: Stats; failed: JobPage | null; retrying: JobPage | null; blocked: JobPage | null; trees: JobPage | null; dead: DeadLetters | null; letters: DeadCount | null }

const nameOf = (j: Job): string => j.aliases?.[0] ?? j.name ?? j.type
/** In lists no more than these of each kind: the rest is behind the last one. */
const most = 4
const long = 30_000 // ms that a ready job may wait

/** Why a job failed, and the same without IDs, which differ where all else is alike. */
const failure = (j: Job): string => j.reason ?? j.errors?.[0]?.message ?? 'it failed'
const gist = (j: Job): string => `${j.type} ${withoutIds(failure(j))}`

/** Failed jobs, those of a type that failed alike as one. */
function failedJobs(page: JobPage | null, all: number): Cause[] {
  const alike = new Map<string, Job[]>()
  for (const j of page?.jobs ?? []) alike.set(gist(j), [...alike.get(gist(j)) ?? [], j])
  const shown = [...alike.values()].slice(0, most)
  const list = shown.flatMap(([j, ...more]): Cause[] => j ? [{
    key: `f ${j.id}`, kind: 'failed', why: <Words text={failure(j)} />, verb: 'See why', to: link('job', j.id),
    what: <><Status of="failed" /> <JobLink id={j.id} name={nameOf(j)} />{more.length > 0 && <> and <a href={link('jobs', '', { status: 'failed', all: 'true', type: j.type })}>{num(more.length)} more</a> of type <bdi>{j.type}</bdi> for the same reason</>}</>,
  }] : [])
  const rest = all - shown.flat().length
  if (rest > 0 && page?.jobs.length) {
    list.push({ key: 'f more', kind: 'failed', what: `${num(rest)} more failed ${rest === 1 ? 'job' : 'jobs'}`, why: 'retry or delete them together', to: link('jobs', '', { status: 'failed', all: 'true' }), verb: 'See all' })
  }
  return list
}

/** Jobs whose run fails again and again: the message that they read next is a poison message. */
function poisoned(page: JobPage | null): Cause[] {
  return (page?.jobs ?? []).filter(j => j.try_count > 0).slice(0, most).map(j => ({
    key: `p ${j.id}`, kind: 'poison', what: <><JobLink id={j.id} name={nameOf(j)} /> has failed {num(j.try_count)} {j.try_count === 1 ? 'time' : 'times'}, and tries again</>,
    why: <Words text={j.errors?.[0]?.message ?? j.reason ?? ''} />, to: link('job', j.id), verb: 'See its message',
  }))
}

/** Jobs that wait because a port that they fill is full. */
function blockedJobs(page: JobPage | null): Cause[] {
  const all = page?.jobs ?? []
  const list = all.slice(0, most).map((j): Cause => ({
    key: `b ${j.id}`, kind: 'blocked', what: <><span className="status s-suspended">ǁ blocked</span> <JobLink id={j.id} name={nameOf(j)} /></>, why: <Reason text={j.reason ?? ''} />, to: link('job', j.id), verb: 'See why',
  }))
  if (all.length > most || page?.next) list.push({ key: 'b more', kind: 'blocked', what: 'More blocked jobs', why: 'each waits until a port that it fills is read from', to: link('jobs', '', { blocked: 'true' }), verb: 'See all' })
  return list
}

/** Trees that are slowed down by a limit of rates: their reason names the job. */
function throttled(page: JobPage | null): Cause[] {
  return (page?.jobs ?? []).filter(j => !isIdle(j.status, j.reason)).slice(0, most).map(j => ({
    key: `t ${j.id}`, kind: 'throttled', what: <><span className="status s-suspended">◔ throttled</span> <JobLink id={j.id} name={nameOf(j)} tree /></>, why: <Words text={j.reason ?? ''} />, to: link('tree', j.id), verb: 'See where',
  }))
}

function lateQueues(queues: Queue[]): Cause[] {
  const all: Cause[] = []
  for (const q of queues) {
    const name = <bdi>{q.queue}</bdi>
    const waits = `${num(q.pending)} ready jobs wait`
    if (q.paused) all.push({ key: `q ${q.queue}`, kind: 'paused', what: <>Queue {name} is paused</>, why: waits, to: link('queues'), verb: 'Resume it' })
    else if (q.pending > 0 && q.engines === 0) all.push({ key: `q ${q.queue}`, kind: 'unserved', what: <>Nobody serves queue {name}</>, why: waits, to: link('queues'), verb: 'See queues' })
    else if (q.limited > 0 && (q.limit || q.limited_ms > long)) all.push({ key: `q ${q.queue}`, kind: 'limited', what: <>{num(q.limited)} ready {q.limited === 1 ? 'job waits' : 'jobs wait'} for a limit in queue {name}</>, why: `the first for ${span(q.limited_ms)}${q.limit ? `; at most ${num(q.limit)} runs of the queue go on at once` : ''}`, to: link('queues'), verb: 'See limits' })
    else if (q.latency_ms > long) all.push({ key: `q ${q.queue}`, kind: 'late', what: <>Queue {name} is late</>, why: `the first ready job waits for ${span(q.latency_ms)} already`, to: link('queues'), verb: 'See queues' })
  }
  return all
}

/** What needs somebody, the worst first; each leads to its cause. */
export function causes({ stats, failed, retrying, blocked, trees, dead, letters }: Found, named: NameOf): Cause[] {
  const all: Cause[] = []
  if (stats.engines.length === 0) {
    all.push({ key: 'engines', kind: 'engines', what: 'No worker is alive', why: <>nothing runs until one is: <code>weir worker</code>, or <code>weir serve</code> without <code>--no-engine</code></>, to: link('queues'), verb: 'See queues' })
  }
  all.push(...failedJobs(stats.failed > 0 ? failed : null, stats.failed), ...poisoned(retrying))
  if (letters && letters.letters > 0) {
    all.push({ key: 'd all', kind: 'dead', what: <>† {deadWords(letters.letters, letters.more)} of {num(letters.jobs)} {letters.jobs === 1 ? 'job' : 'jobs'}</>, why: 'messages that could not be handled: look at them, requeue or discard them', to: link('dead'), verb: 'See all' })
  }
  for (const l of (dead?.letters ?? []).slice(0, most)) {
    all.push({ key: `d ${l.in.job} ${l.id}`, kind: 'dead', what: <>Dead letter of <JobName id={l.job} of={named(l.job)} /></>, why: <bdi>{l.error}</bdi>, to: link('dead', '', { job: l.in.job }), verb: 'Look at it' })
  }
  all.push(...lateQueues(stats.queues), ...blockedJobs(blocked), ...throttled(trees))
  if (stats.overdue > 0) all.push({ key: 'overdue', kind: 'late', what: `${num(stats.overdue)} timers are late`, why: 'the sweeper of a worker fires them: is one alive?', to: link('queues'), verb: 'See queues' })
  return all
}
