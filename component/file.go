package component

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirworks/weir/worker"
)

// Values of the parameter format of ReadFile and WriteFile.
const (
	FormatLines = "lines" // a message is the text of a line
	FormatCSV   = "csv"   // a message is an object, or a list, of the fields of a record
	FormatJSONL = "jsonl" // a message is the JSON value of a line
)

// maxLine is the longest line or record.
const maxLine = worker.MaxMessage

// formatOf is the format that a parameter names, or that follows from a file's name.
func formatOf(format, path string) string {
	if format != "" {
		return format
	}
	switch filepath.Ext(strings.TrimSuffix(strings.ToLower(path), ".gz")) {
	case ".csv":
		return FormatCSV
	case ".jsonl", ".ndjson":
		return FormatJSONL
	}
	return FormatLines
}

// comma returns the separator of fields.
func comma(s string) (rune, error) {
	if s == "" {
		return ',', nil
	}
	r := []rune(s)
	if len(r) != 1 || strings.ContainsRune("\"\r\n\uFFFD", r[0]) {
		return 0, fmt.Errorf("comma %q: use one character, neither quote nor newline", s)
	}
	return r[0], nil
}

func (c *check) format(format, sep string) {
	c.oneOf("format", format, FormatLines, FormatCSV, FormatJSONL)
	if _, err := comma(sep); err != nil {
		c.add("%v", err)
	}
}

// folder is the directory below which files are opened, see Policy.Root.
type folder struct {
	path string
	root *os.Root
}

// filePolicy is which files jobs may use, see Policy.
type filePolicy struct {
	root string
	none bool
}

func openFolder(p filePolicy) (*folder, error) {
	if p.none {
		return nil, worker.Permanent(errors.New("jobs may use no files here: whoever runs the engine names a directory for them, as weir serve --root DIR does"))
	}
	path := cmp.Or(p.root, ".")
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening the folder for files: %w", err)
	}
	return &folder{path, root}, nil
}

// Close gives the folder back.
func (f *folder) Close() error { return f.root.Close() }

// rel returns a path as os.Root wants it: relative to the folder.
func (f *folder) rel(path string) (string, error) {
	if path == "" {
		return "", errors.New("the path is empty")
	}
	rel := path
	if filepath.IsAbs(path) {
		var err error
		if rel, err = filepath.Rel(f.path, path); err != nil {
			return "", err
		}
	}
	if !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s is outside of %s, below which jobs may use files", path, f.path)
	}
	return rel, nil
}

// open opens a regular file. Others are refused before they are opened: opening a pipe
// would wait for somebody at its other end.
func (f *folder) open(path string, flag int) (*os.File, error) {
	rel, err := f.rel(path)
	if err != nil {
		return nil, err
	}
	info, err := f.root.Stat(rel)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case err != nil && (flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)):
		return nil, f.fault(path, err)
	}
	file, err := f.root.OpenFile(rel, flag, 0o666)
	if err != nil {
		return nil, f.fault(path, err)
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// fault says which file could not be opened, and where it was looked for.
func (f *folder) fault(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("opening %s below %s: %w", path, f.path, err)
}
