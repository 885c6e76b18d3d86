// Command check looks whether all links and pictures of a built site lead to a file of it, and to a heading that is there. Links
// to the source of the project must lead to a file, too: it is run in the root of the project.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// source is where links to files of the project lead that have no page.
const source = "https://github.com/weirworks/weir/blob/main/"

var (
	reference = regexp.MustCompile(`<[a-z]+\b[^>]*? (?:href|src)="([^"]*)"`)
	anchor    = regexp.MustCompile(` id="([^"]*)"`)
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "check: give the folder of the site")
		os.Exit(2)
	}
	links, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("all of %d links lead somewhere\n", links)
}

// check returns how many links there are, or the error of each that leads nowhere.
func check(root string) (links int, err error) {
	pages := map[string]string{}
	walk := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".html" {
			return err
		}
		text, err := os.ReadFile(name) //nolint:gosec // the user names the folder
		pages[filepath.ToSlash(strings.TrimPrefix(name, filepath.Clean(root)))] = string(text)
		return err
	})
	if walk != nil || len(pages) == 0 {
		return 0, fmt.Errorf("check: %s has %d pages: %w", root, len(pages), walk)
	}
	var errs []error
	for name, text := range pages {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			links++
			if err := follow(root, pages, name, strings.ReplaceAll(m[1], "&amp;", "&")); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", name, m[1], err))
			}
		}
	}
	return links, errors.Join(errs...)
}

var errNowhere = errors.New("it leads nowhere")

// follow looks where a link of a page leads.
func follow(root string, pages map[string]string, from, link string) error {
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	if file, ok := strings.CutPrefix(link, source); ok {
		_, err := os.Stat(filepath.FromSlash(path.Clean(file)))
		return err
	}
	if u.IsAbs() {
		return nil
	}
	to := from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
		if strings.HasPrefix(u.Path, "/") {
			to = path.Clean(u.Path)
		}
	}
	if pages[to] == "" && pages[path.Join(to, "index.html")] != "" {
		to = path.Join(to, "index.html")
	}
	if pages[to] == "" {
		if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil || info.IsDir() {
			return errNowhere
		}
	}
	if u.Fragment == "" {
		return nil
	}
	for _, id := range anchor.FindAllStringSubmatch(pages[to], -1) {
		if id[1] == u.Fragment {
			return nil
		}
	}
	return fmt.Errorf("there is no heading #%s", u.Fragment)
}
