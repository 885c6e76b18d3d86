package lab

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	itemBytes = 98 // and two quotes make a message of 100 bytes
	digits    = 10
)

// Item returns the message with the number i: a text that is 100 bytes of JSON.
func Item(i int) string {
	return fmt.Sprintf("%0*d%s", digits, i, strings.Repeat("x", itemBytes-digits))
}

// Number returns the number of an item, or an error if it is not one.
func Number(item string) (int, error) {
	if len(item) != itemBytes || strings.Trim(item[digits:], "x") != "" {
		return 0, fmt.Errorf("%.120q is not one of the messages that were sent", item)
	}
	return strconv.Atoi(item[:digits])
}

// InOrder returns an error unless items are those with the n numbers from first on, each once
// and in order.
func InOrder(items []string, first, n int) error {
	if len(items) != n {
		return fmt.Errorf("%d messages came out, and %d went in", len(items), n)
	}
	for k, item := range items {
		i, err := Number(item)
		if err != nil {
			return err
		}
		if i != first+k {
			return fmt.Errorf("message %d came out where %d belongs", i, first+k)
		}
	}
	return nil
}
