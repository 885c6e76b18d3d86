package graphfile

import (
	"math/big"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/token"
)

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	looseFloat = regexp.MustCompile(`^(-?)([0-9]*)\.([0-9]*)([eE][-+]?[0-9]+)?$`)
	otherBase  = regexp.MustCompile(`^-?0[xob][0-9a-fA-F]+$`)
	zeroFirst  = regexp.MustCompile(`^-?0[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$`)
)

// scalar converts a scalar without quotes.
func (r *yamlReader) scalar(pos Pos, s string) *value {
	if jsonNumber.MatchString(s) {
		return &value{kind: number, text: s, pos: pos, size: len(s)}
	}
	bare := strings.ReplaceAll(strings.TrimPrefix(s, "+"), "_", "")
	float := looseFloat.FindStringSubmatch(bare)
	switch {
	case strings.HasPrefix(s, "_") || strings.HasPrefix(s, "+-"):
	case jsonNumber.MatchString(bare):
		return &value{kind: number, text: bare, pos: pos, size: len(bare)}
	case zeroFirst.MatchString(bare):
		return r.fail(pos, "%s is octal for some and decimal for others: put it in quotes, or write it without the 0 (0o for octal)", s)
	case otherBase.MatchString(bare):
		if n, ok := new(big.Int).SetString(bare, 0); ok && len(bare) <= 100 {
			return &value{kind: number, text: n.String(), pos: pos, size: len(bare)}
		}
	case float != nil && float[2]+float[3] != "":
		n := float[1] + orZero(float[2]) + "." + orZero(float[3]) + float[4]
		return &value{kind: number, text: n, pos: pos, size: len(n)}
	}
	switch token.New(s, s, &token.Position{}).Type {
	case token.InfinityType, token.NanType:
		return r.fail(pos, "%s is not a JSON number: put it in quotes if it is a text", s)
	default:
		return r.text(pos, s)
	}
}

func orZero(digits string) string {
	if digits == "" {
		return "0"
	}
	return digits
}
