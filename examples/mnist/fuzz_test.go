package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// idx is an IDX file: the words of its header, and bytes.
func idx(header []int32, data ...byte) []byte {
	var b bytes.Buffer
	for _, w := range header {
		_ = binary.Write(&b, binary.BigEndian, w) // memory does not fail
	}
	return append(b.Bytes(), data...)
}

// Whatever is in the files of images and labels, reading them is an error, or gives as many images as labels, of the right size, of digits.
func FuzzReadSplit(f *testing.F) {
	images := func(n int32) []byte { return idx([]int32{imageMagic, n, side, side}, make([]byte, int(n)*pixels)...) }
	f.Add(images(2), idx([]int32{labelMagic, 2}, 3, 9))
	f.Add(images(1), idx([]int32{labelMagic, 2}, 3, 9))
	f.Add(images(1), idx([]int32{labelMagic, 1}, 10))
	f.Add(images(1)[:100], idx([]int32{labelMagic, 1}, 1))
	f.Add(idx([]int32{imageMagic, -1, side, side}), idx([]int32{labelMagic, 1 << 30}))
	f.Add([]byte(nil), []byte{1})
	f.Fuzz(func(t *testing.T, images, labels []byte) {
		dir := t.TempDir()
		for name, data := range map[string][]byte{"x-images-idx3-ubyte.gz": images, "x-labels-idx1-ubyte.gz": labels} {
			var b bytes.Buffer
			z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
			require.NoError(t, err)
			_, err = z.Write(data)
			require.NoError(t, err)
			require.NoError(t, z.Close())
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600))
		}
		s, err := readSplit(dir, "x")
		if err != nil {
			return
		}
		require.Len(t, s.labels, s.len())
		require.LessOrEqual(t, s.len()*pixels+16, len(images))
		for i := range s.labels {
			require.Len(t, s.images[i], pixels)
			require.Less(t, int(s.labels[i]), classes)
		}
	})
}
