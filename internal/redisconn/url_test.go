package redisconn

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, shown, full string }{
		{"redis://localhost", "redis://localhost:6379", ""},
		{"redis://localhost/", "redis://localhost:6379", "redis://localhost:6379"},
		{"REDIS://localhost:7000/03", "redis://localhost:7000/3", ""},
		{"redis://:@localhost", "redis://localhost:6379", ""},
		{"redis://[::1]/2", "redis://[::1]:6379/2", ""},
		{"redis://[::1]:7000", "redis://[::1]:7000", ""},
		{"redis://:s3cr3t@h", "redis://:***@h:6379", "redis://:s3cr3t@h:6379"},
		{"redis://weir:s3cr3t@h:1/2", "redis://weir:***@h:1/2", "redis://weir:s3cr3t@h:1/2"},
		{"redis://w%40x:s3%2Fcr3t%3F@h", "redis://w%40x:***@h:6379", "redis://w%40x:s3%2Fcr3t%3F@h:6379"},
		{"redis://h?db=4&dial_timeout=3s", "redis://h:6379/4", "redis://h:6379/4?dial_timeout=3s"},
		{"redis://h?pool_size=65536&max_concurrent_dials=0&max_idle_conns=0&pipeline_pool_size=-1", "redis://h:6379", ""},
		{"redis+sentinel://h/m?pool_size=65536&pipeline_pool_size=65536&max_retries=-1", "redis+sentinel://h:26379/m", ""},
		{"rediss://redis_1.example.com", "rediss://redis_1.example.com:6379", ""},
		{"unix:///run/redis.sock", "unix:///run/redis.sock", ""},
		{"unix:///run/redis%40main.sock?db=3", "unix:///run/redis%40main.sock?db=3", ""},
		{"unix://:s3cr3t@/run/redis.sock", "unix://:***@/run/redis.sock", "unix://:s3cr3t@/run/redis.sock"},
		{"redis+sentinel://h1,h2:1/mymaster", "redis+sentinel://h1:26379,h2:1/mymaster", ""},
		{"redis+sentinel://weir:s3cr3t@h1/my-master/3", "redis+sentinel://weir:***@h1:26379/my-master/3", ""},
		{"rediss+sentinel://h1/m?sentinel_password=s3cr3t", "rediss+sentinel://h1:26379/m", ""},
		{"redis+cluster://h1:7000,[::2]:7001", "redis+cluster://h1:7000,[::2]:7001", ""},
		{"rediss+cluster://:s3cr3t@h1,h2/0?skip_verify=true", "rediss+cluster://:***@h1:6379,h2:6379", ""},
	} {
		got, err := Parse(c.raw)
		if err != nil {
			t.Errorf("Parse(%q): %v", c.raw, err)
			continue
		}
		if got.String() != c.shown || c.full != "" && got.full != c.full {
			t.Errorf("Parse(%q) = %q, in full %q; want %q, in full %q", c.raw, got, got.full, c.shown, c.full)
		}
		if shown, err := Mask(c.raw); err != nil || shown != c.shown {
			t.Errorf("Mask(%q) = %q, %v", c.raw, shown, err)
		}
		checkRoundTrip(t, got)
		if err := got.Client().Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestParseURLSingle(t *testing.T) {
	t.Parallel()
	o := mustParse(t, "rediss://weir:s3%40cr3t@h/2?max_retries=7&read_timeout=6s&pool_size=3").single
	if o.Network != "tcp" || o.Addr != "h:6379" || o.Username != "weir" || o.Password != "s3@cr3t" || o.DB != 2 {
		t.Errorf("got %+v", o)
	}
	if o.MaxRetries != 7 || o.ReadTimeout != 6*time.Second || o.PoolSize != 3 || !o.ContextTimeoutEnabled {
		t.Errorf("got %+v", o)
	}
	if o.TLSConfig == nil || o.TLSConfig.ServerName != "h" {
		t.Errorf("TLS %+v", o.TLSConfig)
	}
	o = mustParse(t, "unix://weir:s3cr3t@/run/a%20b.sock?db=2").single
	if o.Network != "unix" || o.Addr != "/run/a b.sock" || o.Password != "s3cr3t" || o.DB != 2 || !o.ContextTimeoutEnabled {
		t.Errorf("got %+v", o)
	}
}

func TestParseURLSentinel(t *testing.T) {
	t.Parallel()
	o := mustParse(t, "rediss+sentinel://weir:s3cr3t@h1,h2:1/main/2?sentinel_username=su&sentinel_password=123456789012&max_retries=7").failover
	if !reflect.DeepEqual(o.SentinelAddrs, []string{"h1:26379", "h2:1"}) || o.MasterName != "main" || o.DB != 2 {
		t.Errorf("got %+v", o)
	}
	if o.Username != "weir" || o.Password != "s3cr3t" || o.SentinelUsername != "su" || o.SentinelPassword != "123456789012" {
		t.Errorf("got %+v", o)
	}
	if o.MaxRetries != 7 || !o.ContextTimeoutEnabled || o.TLSConfig == nil || o.TLSConfig.ServerName != "" {
		t.Errorf("got %+v", o)
	}
}

func TestParseURLCluster(t *testing.T) {
	t.Parallel()
	target := mustParse(t, "rediss+cluster://weir:s3cr3t@h1,h2:1?skip_verify=1&max_retries=7")
	o := target.cluster
	if !reflect.DeepEqual(o.Addrs, []string{"h1:6379", "h2:1"}) || o.Username != "weir" || o.Password != "s3cr3t" {
		t.Errorf("got %+v", o)
	}
	if o.MaxRetries != 7 || !o.ContextTimeoutEnabled || o.TLSConfig == nil || o.TLSConfig.ServerName != "" || !o.TLSConfig.InsecureSkipVerify {
		t.Errorf("got %+v", o)
	}
	c := target.Client()
	defer func() { _ = c.Close() }()
	if _, ok := c.(*redis.ClusterClient); !ok {
		t.Errorf("client is a %T", c)
	}
}

func TestParseURLErrors(t *testing.T) {
	t.Parallel()
	const cluster = "rediss+cluster://h1,h2"
	for _, c := range []struct{ raw, want string }{
		{"localhost:6379", "write redis://localhost:6379"},
		{"localhost:6379/2", "write redis://localhost:6379/2"},
		{"localhost", "write redis://host:port"},
		{"hunter2", `"***"`},
		{"redis:localhost:6379", "scheme is missing"},
		{"redis:/localhost", "scheme is missing"},
		{"://localhost", "scheme is missing"},
		{"http://localhost:6379", "did you mean redis://?"},
		{"https://localhost", "did you mean rediss://?"},
		{"reds://localhost", "did you mean redis://?"},
		{"redis-sentinel://h/m", "(a right one: redis+sentinel://"},
		{"file:///run/redis.sock", "did you mean unix://?"},
		{"postgres://localhost", `unknown scheme "postgres"; use one of redis, rediss, unix, redis+sentinel,`},
		{"redis://", "host is missing"},
		{"redis:///2", "host is missing"},
		{"redis://h ", "line break"},
		{"redis://h\n", "line break"},
		{"redis://h\x00", "control character"},
		{"redis://h:port", `"redis://h:***": a port is not a number`},
		{"redis://h:0", "a port is not a number"},
		{"redis://h:65536", "redis://h:***"},
		{"redis://fe80::1", "IPv6 address has no brackets"},
		{"redis://[h]:6379", "no IPv6 address"},
		{"redis://[::1", "no IPv6 address"},
		{"redis://[::1]6379", "a port is not a number"},
		{"redis://h<x", "characters that no host name has"},
		{"redis://h1,h2", "write redis+cluster:// or redis+sentinel://"},
		{"redis://weir@h", "user without a password"},
		{"redis://h/x", "database is not a number"},
		{"redis://h/-1", "database is not a number"},
		{"redis://h/1/2", "database is not a number"},
		{"redis://h/1?db=2", "two database numbers"},
		{"redis://h/%zz", "in the path, a %"},
		{"redis://h#1", "it has a #"},
		{"redis://h?%zz=1", "parameters cannot be read"},
		{"redis://h?colour=red", "unknown parameter colour"},
		{"redis://h?b=1&a=1", "unknown parameter a, b"},
		{"redis://h?dial_timeout=soon", "invalid dial_timeout duration"},
		{"redis://h?max_retries=x", "invalid max_retries number"},
		{"redis://h?max_retries=1&max_retries=2", "max_retries is there more than once"},
		{"redis://h?pool_size=-1", "pool_size must be from 0 to 65536"},
		{"redis://h?pool_size=9999999999", "pool_size must be from"},
		{"redis://h?addr=h2:1", "name all hosts before the path"},
		{"redis://h?skip_verify=1", "unknown parameter skip_verify"},
		{"unix://run/redis.sock", "three slashes"},
		{"unix://", "socket is missing"},
		{"unix:///run/", "socket is missing"},
		{"unix:///run/a%00b", "zero byte"},
		{"redis+sentinel://h1", "name of the master is missing"},
		{"redis+sentinel://h1/a%20b", "name of the master"},
		{"redis+sentinel://h1/m/x", "database is not a number"},
		{"redis+sentinel://h1/m?route_randomly=true", "replicas may be out of date"},
		{"redis+sentinel://h1/m?sentinel_username=x", "unknown parameter sentinel_username"},
		{"redis+sentinel://h1,/m", "host is missing"},
		{"redis+cluster://h1/1", "a cluster has only database 0"},
		{"redis+cluster://h1?db=1", "a cluster has only database 0"},
		{cluster + "?skip_verify=x", "invalid skip_verify boolean"},
		{cluster + "?read_only=true", "replicas may be out of date"},
	} {
		_, err := Parse(c.raw)
		switch {
		case err == nil:
			t.Errorf("Parse(%q): no error", c.raw)
		case !errors.Is(err, job.ErrConfig):
			t.Errorf("Parse(%q): %v: not job.ErrConfig", c.raw, err)
		case strings.ContainsAny(err.Error(), "\r\n"):
			t.Errorf("Parse(%q): several lines: %v", c.raw, err)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("Parse(%q):\n%v\nhas no %q", c.raw, err, c.want)
		case !strings.Contains(err.Error(), "(a right one: "):
			t.Errorf("Parse(%q): no example: %v", c.raw, err)
		}
	}
}

// The examples in errors must be right themselves.
func TestParseURLExamples(t *testing.T) {
	t.Parallel()
	for _, s := range urlSchemes {
		if got := mustParse(t, s.example); !strings.HasPrefix(got.full, s.name+"://") {
			t.Errorf("%s became %s", s.example, got.full)
		}
	}
}

func TestParseURLKeepsSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, raw := range []string{
		"redis://u:" + secret + "@h:port",
		"redis://u:" + secret + "@h:6379:6379",
		"redis://u:" + secret + "@h/x",
		"redis://u:" + secret + "@",
		"redis://u:" + secret + "@@h",
		"redis://u:" + secret + "%zz@h",
		"redis://u:" + secret + "%@h",
		"redis://u:" + secret + "/x@h",
		"redis://u:x/" + secret + "@h",
		"redis://u:" + secret + "?x@h",
		"redis://u:x?" + secret + "@h",
		"redis://u:" + secret + "#x@h",
		"redis://u:x#" + secret + "@h",
		"redis://u:" + secret + "\n@h",
		"redis://u:" + secret + "\x7f@h",
		"redis://u:" + secret + "@h\n",
		"redis://u:" + secret + "@h?nope=1",
		"redis://u:" + secret + "@[::1",
		"redis://u:x@" + secret + "@h",
		"redis://" + secret + "@h",
		"redis://:" + secret,
		"redis://u:" + secret,
		"redis://u:" + secret + "/0",
		"redis://u:x," + secret,
		"redis://:12345" + secret,
		"redis://h:6379:" + secret,
		"redis://[u:" + secret + "]",
		"redis://h/u:" + secret,
		"redis://h?u:" + secret,
		"redis://h?password=" + secret,
		"redis://h?dial_timeout=" + secret,
		"redis://h?pool_fifo=" + secret,
		"redis://h/" + "?db=" + secret,
		"redis+sentinel://h/m?password=" + secret,
		"redis+sentinel://h/m?sentinel_password=" + secret + "&nope=1",
		"redis+sentinel://h/m?sentinel_password=" + secret + ";",
		"redis+sentinel://u:" + secret + "@h1,h2",
		"redis+cluster://u:" + secret + "@h1,h2/7",
		"redis+cluster://u:" + secret + "@h1,h2?addr=x",
		"unix://u:" + secret + "@run/redis.sock",
		"unix://u:" + secret + "/run/redis.sock",
		"unix:///u:" + secret + "@/run/redis.sock",
		"http://u:" + secret + "@h",
		"reds://u:" + secret + "@h",
		"u:" + secret + "@h:6379",
		":" + secret + "@h:6379",
		"redis:u:" + secret + "@h",
		"redis:/u:" + secret + "@h",
		"redis//u:" + secret + "@h",
		"u:" + secret + "://h",
		secret,
		"%zz" + secret,
	} {
		_, err := Parse(raw)
		if err == nil {
			t.Errorf("Parse(%q): no error", raw)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("Parse(%q) tells the password: %v", raw, err)
		}
		if shown, err := Mask(raw); err == nil || strings.Contains(shown, secret) {
			t.Errorf("Mask(%q) = %q, %v", raw, shown, err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, s := range urlSchemes {
		f.Add(s.name, "weir", "h:6379/0")
	}
	f.Add("redis", "", "[::1]?db=2&dial_timeout=3s")
	f.Add("unix", "", "/run/redis%40x.sock?db=1")
	f.Add("redis+sentinel", "a%20b", "h1:1,h2:2/main/3?sentinel_password=x&max_retries=2")
	f.Add("rediss+cluster", "", "h1,h2:7000?skip_verify=true")
	f.Add("http", "u@x", "%zz#\n")
	f.Fuzz(func(t *testing.T, scheme, user, rest string) {
		const secret = "s3cr3t-Passw0rd"
		if strings.Contains(scheme+" "+user+" "+rest, secret) {
			return
		}
		check := func(raw string, hasUser bool) {
			got, err := Parse(raw)
			if err != nil {
				if text := err.Error(); strings.Contains(text, secret) || strings.Contains(text, "\n") || !errors.Is(err, job.ErrConfig) {
					t.Fatalf("Parse(%q): %v", raw, err)
				}
				return
			}
			if hasUser && strings.Contains(got.String(), secret) {
				t.Fatalf("Parse(%q).String() = %q", raw, got)
			}
			checkRoundTrip(t, got)
		}
		check(scheme+"://"+user+":"+secret+"@"+rest, true)
		check(scheme+":"+secret+"@"+rest, true)
		check(scheme+"://"+user+":"+secret+rest, false)
		check(scheme+"://"+rest, false)
	})
}

// checkRoundTrip wants the canonical URL to mean the same and to be its own canonical form.
func checkRoundTrip(t *testing.T, got *Target) {
	t.Helper()
	again, err := Parse(got.full)
	if err != nil {
		t.Fatalf("the canonical form %q: %v", got.full, err)
	}
	if !reflect.DeepEqual(again, got) {
		t.Fatalf("%q became %q", got.full, again.full)
	}
}

func mustParse(t *testing.T, raw string) *Target {
	t.Helper()
	got, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
