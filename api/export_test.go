package api

// Route is one operation.
type Route struct {
	Method, Path string
	Role         Role
}

// Routes are all operations of a server.
func (s *Server) Routes() (all []Route) {
	for _, r := range s.routes {
		all = append(all, Route{r.method, r.path, r.role})
	}
	return all
}

// Allowed tells whether a role may do what another one is asked for.
func Allowed(has, needs Role) bool { return allowed(has, needs) }

// Watched is how many trees are read for those who watch them.
func (s *Server) Watched() int {
	s.watched.mu.Lock()
	defer s.watched.mu.Unlock()
	return len(s.watched.all)
}

// Followed is how many logs are read for those who follow them.
func (s *Server) Followed() int {
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	return len(s.feeds.logs)
}
