package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// versionInfo is what a program knows of how it was built.
type versionInfo struct {
	Version  string `json:"version"`            // a release, a pseudo-version, or (devel)
	Commit   string `json:"commit,omitempty"`   // of Git, if it was built in a checkout
	Time     string `json:"time,omitempty"`     // of that commit
	Modified bool   `json:"modified,omitempty"` // the checkout had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionOfProgram() versionInfo {
	v := versionInfo{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String is the version as a line for people.
func (v versionInfo) String() string {
	about := []string{v.Go, v.Platform}
	if v.Commit != "" {
		commit := v.Commit[:min(12, len(v.Commit))]
		if v.Modified {
			commit += " with changes"
		}
		about = append([]string{"commit " + commit}, about...)
	}
	return fmt.Sprintf("weir %s (%s)", v.Version, strings.Join(about, ", "))
}

func newVersion(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program, and of what it was built",
		Example: "  weir version\n  weir version -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			v := versionOfProgram()
			return s.show(c, v, "", func(w io.Writer) error {
				_, err := fmt.Fprintln(w, v)
				return err
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}
