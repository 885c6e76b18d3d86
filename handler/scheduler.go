package handler

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Scheduler chooses which type runs next when there is room for another batch. It is fair among tenants, and among the types of each:
// where several wait, each gets the same number of payloads after a while, however many wait of the others, so that each that waits is
// chosen within a bounded number of picks. It has neither clock nor lock. The zero value is ready.
type Scheduler struct {
	// Batch tells how many payloads of a type make a batch at most; nil: 1.
	Batch func(typ string) int
	// Tenant tells whose a type is; nil: all are of one tenant.
	Tenant func(typ string) string

	tenants map[string]*share
	now     float64 // the place of the tenant that was picked last
}

// share is what one tenant, or one type, had of what there is to share.
type share struct {
	at      float64 // its place: who is least is next
	running int     // payloads
	within  float64 // the place of the type that was picked last
	types   map[string]*share
}

// Pick returns the type that is to run next, and how many of its payloads. waiting tells how many there are of each type; without any the
// type is empty. Started is to be called when they run.
func (s *Scheduler) Pick(waiting map[string]int) (typ string, n int) {
	s.forget(waiting)
	byTenant := map[string][]string{}
	for t, n := range waiting {
		if n > 0 {
			byTenant[s.tenantOf(t)] = append(byTenant[s.tenantOf(t)], t)
		}
	}
	if len(byTenant) == 0 {
		return "", 0
	}
	tenant := least(slices.Collect(maps.Keys(byTenant)), func(name string) float64 { return s.tenant(name).at })
	who := s.tenant(tenant)
	typ = least(byTenant[tenant], func(name string) float64 { return who.typ(name).at })
	s.now, who.within = who.at, who.typ(typ).at
	return typ, min(waiting[typ], s.batch(typ))
}

// Started tells that n payloads of a type run now.
func (s *Scheduler) Started(typ string, n int) {
	tenant := s.tenant(s.tenantOf(typ))
	t := tenant.typ(typ)
	for _, x := range []*share{tenant, t} {
		x.at += float64(n)
		x.running += n
	}
}

// Stopped tells that n payloads of a type run no more, whether they are done or not. More than have started count as all of them.
func (s *Scheduler) Stopped(typ string, n int) {
	tenant := s.tenant(s.tenantOf(typ))
	t := tenant.typ(typ)
	n = min(max(n, 0), t.running)
	t.running -= n
	tenant.running -= n
}

// Running returns how many payloads of a type run.
func (s *Scheduler) Running(typ string) int {
	if tenant := s.tenants[s.tenantOf(typ)]; tenant != nil && tenant.types[typ] != nil {
		return tenant.types[typ].running
	}
	return 0
}

// forget lets go of tenants and types that neither run nor wait.
func (s *Scheduler) forget(waiting map[string]int) {
	for name, tenant := range s.tenants {
		for typ, t := range tenant.types {
			if t.running == 0 && waiting[typ] == 0 {
				delete(tenant.types, typ)
			}
		}
		if len(tenant.types) == 0 {
			delete(s.tenants, name)
		}
	}
}

func (s *Scheduler) batch(typ string) int {
	if s.Batch == nil {
		return 1
	}
	return max(s.Batch(typ), 1)
}

func (s *Scheduler) tenantOf(typ string) string {
	if s.Tenant == nil {
		return ""
	}
	return s.Tenant(typ)
}

// tenant returns the share of a tenant: one that is new begins where the others are, so that it neither waits nor catches up.
func (s *Scheduler) tenant(name string) *share {
	if s.tenants == nil {
		s.tenants = map[string]*share{}
	}
	if s.tenants[name] == nil {
		s.tenants[name] = &share{at: s.now, types: map[string]*share{}}
	}
	return s.tenants[name]
}

func (x *share) typ(name string) *share {
	if x.types[name] == nil {
		x.types[name] = &share{at: x.within}
	}
	return x.types[name]
}

// least returns the name whose place is least, of several the first.
func least(names []string, place func(string) float64) string {
	return slices.MinFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
	})
}
