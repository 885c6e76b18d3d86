package journal

import "os"

// File is what a segment is written to.
type File = file

// Faulty has a journal write to what create returns.
func Faulty(cfg Config, create func(f *os.File) File) Config {
	cfg.create = func(path string) (file, error) {
		f, err := createFile(path)
		if err != nil {
			return nil, err
		}
		if made := create(f.(*os.File)); made != nil {
			return made, nil
		}
		return nil, ErrNoSpace(f, path)
	}
	return cfg
}

// ErrNoSpace undoes the creation of a file.
func ErrNoSpace(f file, path string) error {
	_ = f.Close()
	_ = os.Remove(path)
	return os.ErrInvalid
}

// Parse reads the blocks of data, and returns the bodies of those that are whole.
func Parse(data []byte, salt uint64) (bodies [][]byte) {
	for len(data) > 0 {
		b, size, err := parse(data, salt)
		if size < 1 || size > len(data) {
			panic("a block has a wrong size")
		}
		if err == nil {
			bodies = append(bodies, b.body)
		}
		data = data[size:]
	}
	return bodies
}

// Block is a block as it lies in a file.
func Block(jobtype string, body []byte, salt uint64) []byte {
	return (&block{jobtype: jobtype, body: body}).append(nil, salt)
}
