package safetensors

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"github.com/pkg/errors"
)

// sumKey is where the metadata have the checksum.
const sumKey = "sha256"

// Seal puts a checksum into the metadata, under "sha256": the SHA-256, in hexadecimal, of the file that Write makes without it. It
// is of the whole content: names, shapes, values, and the other metadata.
func Seal(tensors []Tensor, metadata map[string]string) error {
	sum, err := sum(tensors, metadata)
	if err == nil {
		metadata[sumKey] = sum
	}
	return err
}

// Check reports a file that is damaged: whose content, as Read gave it, has another checksum than Seal gave it, or none.
func Check(tensors []Tensor, metadata map[string]string) error {
	want, ok := metadata[sumKey]
	if !ok {
		return errors.New("safetensors: the file has no checksum")
	}
	have, err := sum(tensors, metadata)
	if err == nil && have != want {
		err = errors.New("safetensors: the file is damaged: its checksum is wrong")
	}
	return err
}

func sum(tensors []Tensor, metadata map[string]string) (string, error) {
	rest := maps.Clone(metadata)
	delete(rest, sumKey)
	h := sha256.New()
	if err := Write(h, tensors, rest); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
