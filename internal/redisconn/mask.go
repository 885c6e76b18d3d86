package redisconn

import (
	"net/netip"
	"strconv"
	"strings"
)

// Mask returns the URL of a Redis as people may see it: its password is masked, its
// parameters are left out. The error says what is wrong with the URL, and the text is
// then whatever of it is surely no password.
func Mask(raw string) (string, error) {
	t, err := Parse(raw)
	if err != nil {
		return urlMask(raw), err
	}
	return t.String(), nil
}

// urlMask shows a text that is no good URL. It hides everything before an @, and, as
// the @ may be what is missing, everything after a colon that begins no port; the values
// of parameters; and all of a text without scheme that is not just host:port.
func urlMask(raw string) string {
	const hidden = "***"
	scheme, rest, ok := urlCutScheme(raw)
	if !ok {
		if urlHostPortRE.MatchString(raw) && urlOddColon(raw) < 0 {
			return raw
		}
		return hidden
	}
	prefix := scheme + "://"
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		prefix, rest = prefix+hidden+"@", rest[i+1:]
	}
	suffix := ""
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest, suffix = rest[:i], rest[i:i+1]+hidden
	}
	if i := urlOddColon(rest); i >= 0 {
		return prefix + rest[:i] + ":" + hidden
	}
	return prefix + rest + suffix
}

// urlOddColon returns where the first colon is that neither stands between a host and a
// port nor in an IPv6 address, or -1.
func urlOddColon(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '[' {
			ip, _, _ := strings.Cut(s[i+1:], "]")
			if _, err := netip.ParseAddr(ip); err == nil {
				i += len(ip) + 1
			}
			continue
		}
		if s[i] != ':' {
			continue
		}
		port := s[i+1:]
		if end := strings.IndexAny(port, ",/"); end >= 0 {
			port = port[:end]
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || i == 0 || s[i-1] == ',' || s[i-1] == '/' {
			return i
		}
	}
	return -1
}
