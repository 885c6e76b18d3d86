// What the API answers, as far as the page shows it; docs/api.md and /openapi.json describe it.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export interface Me { name: string; role: 'read' | 'operate' | 'work' | 'admin'; tenant: string }

export interface Port { size: number; default: Json; limit: number | null; closed: boolean }

export interface Failure {
  at: string; message: string; trace?: string; began?: string; step?: number; try?: number; stack?: string; port?: string; number?: number
}

/** How far a job says that it is; a total of 0 is not known. */
export interface Progress { done: number; total?: number; text?: string }

export interface Job {
  id: string; name: string | null; type: string; queue: string; status: string; reason: string | null; parent: string | null
  children: Record<string, string> | null; aliases: string[] | null; labels: Record<string, string> | null
  created_at: string | null; created_by: string | null; ran_at: string | null; expires_at: string | null
  progress?: Progress; try_count: number; lock?: Lock; errors: Failure[] | null; state?: Record<string, Json>
  in: Record<string, Port>; out: Record<string, Port>; trace?: string; args?: Json; next_at?: string | null
}


/** What a job is called: as a child, or by an alias, or by its type. */
export interface JobName { id: string; name: string; type: string }

export interface JobPage { jobs: Job[]; next?: string }

export interface Because { job: string; level: number; text: string; command?: string; since?: string; next?: string }

export interface Movement { job: string; dir: 'in' | 'out'; port: string; from?: number | undefined; n: number; data?: Json[]; context?: Record<string, Json> }
export interface RunEntry {
  step: number; by?: string; read?: Movement[]; write?: Movement[]; sent?: Movement[]; groups?: RunEntry[]; error?: string; stack?: string; took_ms?: number
}
export interface LogLine { at: string; job: string; run?: RunEntry; note?: Json }
export interface Trimmed { tree: string; entries: number; since: string }
export interface LogPage { entries: LogLine[]; position: string; earlier?: string; trimmed?: Trimmed[] | null }
export interface Origin { entries: LogLine[]; missing?: Movement[]; trimmed?: Trimmed; more?: boolean }

export interface Message { data: Json; context?: Record<string, Json>; at?: string }
export interface Messages { from: number; messages: Message[] }

export interface Ready { type: string; jobs: number; oldest_ms: number }
export interface Queue {
  queue: string; paused: boolean; limit?: number; pending: number; limited: number; limited_ms: number; active: number; scheduled: number; retry: number
  latency_ms: number; engines: number; slots: number; types: string[] | null; ready: Ready[]
}
export interface Engine { id: string; host: string; pid: number; started: string; stopping: boolean; concurrency: number; running: number; version?: string }
export interface Spread { p50_seconds: number; p95_seconds: number }
export interface Activity { at: string; runs: number; failed: number; read: number; written: number; waited: Spread; took: Spread }
export interface Rates { runs_per_second: number; failed_per_second: number; read_per_second: number; written_per_second: number; waited: Spread; took: Spread }
export interface Stats {
  at: string; namespace: string; roots: number; failed: number; dead: number; due: number; overdue: number; removed: number; running: number
  queues: Queue[]; engines: Engine[]; recent: Rates; activity: Activity[]
}

export interface Trigger {
  id: string; aliases?: string[]; status: string; kind: string; paused: boolean; understood?: string; next?: string[]
  definition: Json; firings: number; launches: number; dropped?: Record<string, number>; failed?: number; last?: string
  last_tree?: string; waiting: number; pending: number; reason?: string
}

export interface DeadLetter {
  id: string; in: { job: string; port: string }; number: number; job: string; error: string; at: string
  messages: Record<string, Json>
  /** What commands call the job: an alias and the names below it, or its ID. */
  name: string
  /** Why it cannot go back to its job. */
  refused?: string
}
export interface DeadCount { letters: number; jobs: number; more: boolean }
export interface DeadLetters { letters: DeadLetter[]; more: boolean }

export interface Pin { name: string; dir: 'in' | 'out'; x: number; y: number }
export interface Picture {
  epoch: number; seq: number; ms: number; title: string; root: string; jobs: number; w: number; h: number; statuses: string[]
  nodes: {
    id: string[]; job: string[]; label: string[]; type: string[]; kind: number[]; parent: number[]; frame: boolean[]; fold: string[]
    x: number[]; y: number[]; w: number[]; h: number[]; pins: Pin[][]; status: number[]; counts: (number[] | null)[]; note: string[]; dead: number[]
  }
  edges: {
    from: number[]; from_port: string[]; to: number[]; to_port: string[]; spawn: boolean[]; limit: number[]; points: number[][]
    waiting: number[]; total: number[]
  }
}
export interface Changes {
  epoch: number; seq: number; ms: number; e: number[] | null; w: number[] | null; t: number[] | null
  n: number[] | null; s: number[] | null; c: (number[] | null)[] | null; o: string[] | null; d: number[] | null
}

export interface TypePort { name: string; dir: 'in' | 'out'; schema: Json }
export interface WorkerType { type: string; queue: string; args: Json; ports: TypePort[] }

export interface Limit { limit: string; places: number; per?: string; by?: string; running: number; waiting: number; holders: string[]; next: string[]; free_in_ms?: number; waited_ms?: number }
export interface Lock { by?: string; since?: string; until: string }
export interface Token { id: string; name: string; role: string; tenant: string; created: string; expires?: string }
export interface MadeToken extends Token { token: string }
export interface AuditEntry { at: string; principal: string; role: string; operation: string; path: string; on?: string; status: number; from: string }
export interface FieldDifference { field: string; from: Json; to: Json }
export interface NodeDifference { path: string; type: string; waiting?: number; fields?: FieldDifference[] }
export interface Difference { same: boolean; added: NodeDifference[]; removed: NodeDifference[]; changed: NodeDifference[]; edges_added: string[]; edges_removed: string[] }
